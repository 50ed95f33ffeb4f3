#include "penstock/memory/lease.h"

#include "penstock/base/checksum.h"

namespace penstock {

LeaseRecord make_lease_record(const ProcessIdentity& process, std::uint32_t host) {
  LeaseRecord record{};
  record.magic = kLeaseMagic;
  record.start_time = process.start_time;
  record.pid_namespace = process.pid_namespace;
  record.boot_id = process.boot_id;
  record.pid = process.pid;
  record.host = host;
  record.checksum = crc32c(&record, offsetof(LeaseRecord, checksum));
  return record;
}

std::optional<ProcessIdentity> read_lease_record(const LeaseRecord& record) {
  if (record.magic != kLeaseMagic) return std::nullopt;
  if (record.checksum != crc32c(&record, offsetof(LeaseRecord, checksum))) return std::nullopt;
  ProcessIdentity process;
  process.boot_id = record.boot_id;
  process.start_time = record.start_time;
  process.pid_namespace = record.pid_namespace;
  process.pid = record.pid;
  return process;
}

}  // namespace penstock
