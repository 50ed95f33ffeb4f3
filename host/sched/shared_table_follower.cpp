#include "penstock/sched/shared_table_follower.h"

#include <utility>
#include <vector>

namespace penstock {

Result<LogFollower> LogFollower::open(Pool& pool, const std::string& name) {
  PENSTOCK_ASSIGN(SharedTable shared, SharedTable::open(pool, name));
  PENSTOCK_ASSIGN(Agreement agreement, shared.agreement(0));
  return LogFollower(std::move(shared), std::move(agreement));
}

Status LogFollower::read(std::uint64_t epoch, std::uint64_t to, const Visitor& visitor) {
  const auto region = shared_.find_reign(epoch);
  if (!region) {
    return error(Code::out_of_range, "reign {} of the shared table '{}' was freed", epoch,
                 shared_.name());
  }
  const ReignReader reader(shared_, *region, epoch);
  while (position_ < to) {
    PENSTOCK_ASSIGN(const LogRecord record, reader.record(position_ + 1));
    visitor(record);
    ++position_;
  }
  return {};
}

// Reigns follow one another by from_epoch; what a reign's log holds beyond the point from which the
// next one went on does not count.
Result<bool> LogFollower::catch_up(std::uint64_t epoch, const Visitor& visitor) {
  std::vector<ReignHeader> chain;
  for (std::uint64_t at = epoch; at != epoch_; at = chain.back().from_epoch) {
    ReignHeader header;
    if (!shared_.find_reign(at, &header)) {
      if (at == epoch) return false;  // not ready
      return error(Code::out_of_range, "reign {} of the shared table '{}' was freed", at,
                   shared_.name());
    }
    chain.push_back(header);
  }
  while (!chain.empty()) {
    if (epoch_ != 0) PENSTOCK_TRY(read(epoch_, chain.back().from_position, visitor));
    epoch_ = chain.back().epoch;
    chain.pop_back();
  }
  return true;
}

Result<std::uint64_t> LogFollower::poll(const Visitor& visitor) {
  const std::uint64_t before = position_;
  PENSTOCK_ASSIGN(const std::uint64_t epoch, SharedTable::role_epoch(&agreement_));
  if (epoch == 0) return 0;
  if (epoch != epoch_) {
    PENSTOCK_ASSIGN(const bool ready, catch_up(epoch, visitor));
    if (!ready) return position_ - before;
  }
  const auto region = shared_.find_reign(epoch);
  if (!region) return position_ - before;
  const std::uint64_t newest = ReignReader(shared_, *region, epoch).newest();
  // What the log held before the role was seen to be still held is there for good.
  PENSTOCK_ASSIGN(const std::uint64_t now, SharedTable::role_epoch(&agreement_));
  if (now == epoch) PENSTOCK_TRY(read(epoch, newest, visitor));
  return position_ - before;
}

}  // namespace penstock
