// How a window begins and ends; what it does is in window_access.cpp and window_blocks.cpp.
#include "penstock/comm/window.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/log.h"
#include "penstock/comm/window_internal.h"

namespace penstock {

using window_internal::kLine;
using window_internal::kWindowMagic;
using window_internal::lines;
using window_internal::WindowHeader;

namespace {

constexpr std::uint32_t kMaxSignals = 1024;
constexpr std::uint32_t kMaxBlocks = 65536;
constexpr std::uint32_t kMaxCopies = 4;
constexpr std::uint64_t kLeaveNs = 2'000'000'000;
constexpr std::uint64_t kPollNs = 50'000;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 46;

Status check_config(const CommWindowConfig& config) {
  const auto range = [](const char* what, std::uint64_t value, std::uint64_t min,
                        std::uint64_t max) -> Status {
    if (value >= min && value <= max) return {};
    return error(Code::invalid_argument, "window: {} is {}; {} to {} is supported", what, value,
                 min, max);
  };
  PENSTOCK_TRY(range("bytes", config.bytes, 0, kMaxBytes));
  PENSTOCK_TRY(range("signals", config.signals, 1, kMaxSignals));
  PENSTOCK_TRY(range("blocks", config.blocks, 0, kMaxBlocks));
  PENSTOCK_TRY(range("block_bytes", config.block_bytes, 0, kMaxBytes >> 20));
  PENSTOCK_TRY(range("block_copies", config.block_copies, 1, kMaxCopies));
  return range("timeout_ms", config.timeout_ms, 1, UINT32_MAX);
}

}  // namespace

struct CommWindow::Entry {
  std::uint32_t code;  // of the failure of this rank; 0: its regions are there
  std::uint32_t signals;
  std::uint32_t blocks;
  std::uint32_t copies;
  std::uint64_t block_bytes;
  std::uint64_t bytes;
  struct Place {
    std::uint64_t address, bytes, generation, slot;
  } control, payload;
  std::array<std::uint8_t, 16> boot_id;
  std::uint64_t start_time, pid_namespace;
  std::uint32_t pid, host, lock_slot, reserved;
  char reason[160];  // NUL-terminated, cut to fit
};

CommWindow::CommWindow(Pool& pool, Comm& comm, const CommWindowConfig& config)
    : pool_(pool),
      comm_(comm),
      platform_(pool.platform()),
      config_(config),
      rank_(comm.rank()),
      process_(platform_.process_generation()),
      oversubscribed_(comm.size() > platform_.cpu_count()),
      ranks_(comm.size()),
      control_(comm.size()),
      payload_(comm.size()) {}

std::uint64_t CommWindow::copy_bytes() const { return kLine + lines(config_.block_bytes); }

// This rank's regions, and what the others have to know of them.
Status CommWindow::allocate(Entry* entry) {
  PENSTOCK_TRY(check_config(config_));
  versions_.resize(config_.blocks);
  const std::uint64_t size = ranks_.size();
  Peer& own = ranks_[rank_];
  RegionRequest request;
  request.kind = RegionKind::comm;
  request.persistent = among_hosts();
  request.bytes = (1 + size + size * config_.signals + 2 * config_.blocks) * kLine;
  request.device = 0;
  PENSTOCK_ASSIGN(own.control, pool_.allocate(request));
  // Symmetric access: each rank has a device of its own, beside the one of the counters.
  const std::uint32_t devices = pool_.device_count();
  request.bytes =
      std::max(kLine, lines(config_.bytes) + copy_bytes() * config_.block_copies * config_.blocks);
  request.device = static_cast<std::int32_t>(devices > 1 ? 1 + rank_ % (devices - 1) : 0);
  auto payload = pool_.allocate(request);
  if (!payload.ok()) {
    free_own();
    return payload.status();
  }
  own.payload = *payload;
  std::byte* control = pool_.resolve(own.control.address, own.control.bytes);
  PENSTOCK_CHECK(control != nullptr, "a fresh region lies outside the pool");
  std::memset(control, 0, own.control.bytes);
  WindowHeader header{};
  header.magic = kWindowMagic;
  header.size = static_cast<std::uint32_t>(size);
  header.rank = rank_;
  header.generation = own.control.generation;
  header.payload_address = own.payload.address;
  header.payload_bytes = own.payload.bytes;
  header.payload_generation = own.payload.generation;
  header.payload_slot = own.payload.slot;
  std::memcpy(control, &header, sizeof(header));
  pool_.publish(control, own.control.bytes);
  platform_.store_fence();
  const auto place = [](const Region& region) {
    return Entry::Place{region.address, region.bytes, region.generation, region.slot};
  };
  entry->control = place(own.control);
  entry->payload = place(own.payload);
  return {};
}

void CommWindow::free_own() {
  Peer& own = ranks_[rank_];
  if (own.control.bytes > 0) (void)pool_.free(own.control);
  if (own.payload.bytes > 0) (void)pool_.free(own.payload);
  own.control = own.payload = Region();
}

bool CommWindow::among_hosts() const {
  const AgreementSpace space = pool_.agreement_space(0);
  return space.base != nullptr && space.participants > 1;
}

// Frees this host's regions of windows that all their ranks have left.
void CommWindow::free_left(Pool& pool) {
  for (const RegionInfo& info : pool.regions()) {
    if (info.kind != RegionKind::comm || !info.name.empty() || info.lease.host != pool.host_id()) {
      continue;
    }
    std::byte* const control = pool.resolve(info.region.address, info.region.bytes);
    if (control == nullptr) continue;
    WindowHeader header;
    std::memcpy(&header, control, sizeof(header));
    if (header.magic != kWindowMagic || header.generation != info.region.generation ||
        header.size > kMaxRanks || (1 + std::uint64_t{header.size}) * kLine > info.region.bytes) {
      continue;
    }
    bool all_left = true;
    for (std::uint32_t r = 0; r < header.size && all_left; ++r) {
      all_left = Fence(pool, control + (1 + r) * kLine).reached(1);
    }
    if (!all_left) continue;
    // The payload first: without the header nobody would find it.
    (void)pool.free({header.payload_address, header.payload_bytes, header.payload_slot,
                     header.payload_generation});
    (void)pool.free(info.region);
  }
}

// Whether every rank is ready and wants the same.
Status CommWindow::agree(const std::vector<Entry>& entries) const {
  for (std::uint32_t r = 0; r < entries.size(); ++r) {
    const Entry& other = entries[r];
    if (other.code == 0) continue;
    return Status(static_cast<Code>(other.code), fmt::format("rank {}: {}", r, other.reason));
  }
  const Entry& own = entries[rank_];
  for (std::uint32_t r = 0; r < entries.size(); ++r) {
    const Entry& other = entries[r];
    const auto differ = [&](const char* what, std::uint64_t mine, std::uint64_t theirs) -> Status {
      if (mine == theirs) return {};
      return error(Code::mismatch, "window: {} is {} at rank {} and {} at rank {}", what, mine,
                   rank_, theirs, r);
    };
    PENSTOCK_TRY(differ("signals", own.signals, other.signals));
    PENSTOCK_TRY(differ("blocks", own.blocks, other.blocks));
    PENSTOCK_TRY(differ("block_bytes", own.block_bytes, other.block_bytes));
    PENSTOCK_TRY(differ("block_copies", own.copies, other.copies));
  }
  return {};
}

Status CommWindow::hold_and_resolve() {
  for (std::uint32_t r = 0; r < size(); ++r) {
    for (const Region* region : {&ranks_[r].control, &ranks_[r].payload}) {
      PENSTOCK_TRY(pool_.hold(*region));
      std::byte* place = pool_.resolve(region->address, region->bytes);
      if (place == nullptr) {
        return error(Code::corrupt,
                     "window: the region of rank {} at {:#x} lies outside of pool {}", r,
                     region->address, pool_.spec());
      }
      (region == &ranks_[r].control ? control_ : payload_)[r] = place;
    }
    // This memory may have been another window's: lines that this host wrote then, and still
    // caches, must not be taken for what the maker put there.
    if (r != rank_) pool_.observe(control_[r], ranks_[r].control.bytes);
  }
  return {};
}

Result<std::unique_ptr<CommWindow>> CommWindow::make(Pool& pool, Comm& comm,
                                                     const CommWindowConfig& config) {
  free_left(pool);
  std::unique_ptr<CommWindow> window(new CommWindow(pool, comm, config));
  Entry own{};
  own.signals = config.signals;
  own.blocks = config.blocks;
  own.copies = config.block_copies;
  own.block_bytes = config.block_bytes;
  own.bytes = config.bytes;
  const Lease lease = pool.lease();
  own.boot_id = lease.process.boot_id;
  own.start_time = lease.process.start_time;
  own.pid_namespace = lease.process.pid_namespace;
  own.pid = lease.process.pid;
  own.host = lease.host;
  own.lock_slot = lease.lock_slot;
  if (const Status status = window->allocate(&own); !status.ok()) {
    own.code = static_cast<std::uint32_t>(status.code());
    std::strncpy(own.reason, status.message().c_str(), sizeof(own.reason) - 1);
  }
  std::vector<Entry> entries(comm.size());
  Call call;
  call.collective = Collective::all_gather;
  call.send = &own;
  call.recv = entries.data();
  call.count = sizeof(Entry);
  Status status = comm.run(call);
  if (status.ok()) status = window->agree(entries);
  if (!status.ok()) {
    window->free_own();  // nobody else has touched it
    return status;
  }
  for (std::uint32_t r = 0; r < comm.size(); ++r) {
    const Entry& entry = entries[r];
    const auto region = [](const Entry::Place& place) {
      return Region{place.address, place.bytes, static_cast<std::uint32_t>(place.slot),
                    place.generation};
    };
    Peer& peer = window->ranks_[r];
    peer.bytes = entry.bytes;
    peer.control = region(entry.control);
    peer.payload = region(entry.payload);
    peer.lease.host = entry.host;
    peer.lease.lock_slot = entry.lock_slot;
    peer.lease.process = {entry.boot_id, entry.start_time, entry.pid_namespace, entry.pid};
  }
  window->agreed_ = true;
  // Nobody uses the window before everybody holds everything.
  const Status held = window->hold_and_resolve();
  std::vector<std::uint32_t> codes(comm.size());
  const auto code = static_cast<std::uint32_t>(held.code());
  call.send = &code;
  call.recv = codes.data();
  call.count = 1;
  call.type = PENSTOCK_UINT32;
  PENSTOCK_TRY(comm.run(call));
  PENSTOCK_TRY(held);
  for (std::uint32_t r = 0; r < comm.size(); ++r) {
    if (codes[r] == 0) continue;
    return Status(static_cast<Code>(codes[r]),
                  fmt::format("window: rank {} could not hold the regions of the others", r));
  }
  return window;
}

bool CommWindow::all_gone() const {
  for (std::uint32_t r = 0; r < size(); ++r) {
    if (r == rank_ || left_fence(rank_, r).reached(1)) continue;
    if (pool_.liveness(ranks_[r].lease) != Liveness::dead) return false;
  }
  return true;
}

// On one host the last one to leave frees everything; two who leave at once may both find that all
// are gone, and then the second one's free finds nothing. Among hosts everybody frees what is its
// own. A region that this rank could not hold it doesn't touch.
void CommWindow::leave() {
  if (!agreed_) {
    free_own();  // nobody else knows of it
    return;
  }
  for (std::uint32_t r = 0; r < size(); ++r) {
    if (control_[r] != nullptr) left_fence(r, rank_).signal(1);
  }
  platform_.store_fence();
  const bool several_hosts = among_hosts();
  bool last = control_[rank_] != nullptr && all_gone();
  if (control_[rank_] != nullptr && several_hosts) {
    const std::uint64_t deadline_ns = platform_.now_ns() + kLeaveNs;
    while (!last && platform_.now_ns() < deadline_ns) {
      platform_.sleep_ns(kPollNs);
      last = all_gone();
    }
  }
  for (std::uint32_t r = 0; r < size(); ++r) {
    for (const Region& region : {ranks_[r].control, ranks_[r].payload}) {
      // What is freed already, or was never held, is no error here.
      if (last && (r == rank_ || !several_hosts)) {
        (void)pool_.free(region);
      } else {
        (void)pool_.drop(region);
      }
    }
  }
}

CommWindow::~CommWindow() {
  // A forked child has no part in it.
  if (process_ == platform_.process_generation()) leave();
}

}  // namespace penstock
