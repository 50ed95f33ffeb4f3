#include "penstock/sim/verilated/axi_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "penstock/base/status.h"

namespace penstock::sim {
namespace {

constexpr std::size_t kMaxViolations = 16;
constexpr std::size_t kWords = kAxiBeatBytes / 8;

// The host's threads use the same memory: whole words, so that a fence is never torn.
void load_line(const std::byte* line, std::uint64_t* words) {
  for (std::size_t i = 0; i < kWords; ++i) {
    auto* at = const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(line) + i);
    words[i] = std::atomic_ref<std::uint64_t>(*at).load(std::memory_order_acquire);
  }
}
void store_line(std::byte* line, const std::uint64_t* words, std::uint64_t strobe) {
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint64_t bits = strobe >> (8 * i) & 0xff;
    auto* at = reinterpret_cast<std::uint64_t*>(line) + i;
    if (bits == 0xff) {
      std::atomic_ref<std::uint64_t>(*at).store(words[i], std::memory_order_release);
      continue;
    }
    for (std::size_t b = 0; b < 8; ++b) {
      if ((bits >> b & 1) == 0) continue;
      auto* byte = reinterpret_cast<std::uint8_t*>(at) + b;
      std::atomic_ref<std::uint8_t>(*byte).store(static_cast<std::uint8_t>(words[i] >> (8 * b)),
                                                 std::memory_order_release);
    }
  }
}

}  // namespace

void AxiMemory::attach(std::uint64_t bus, void* data, std::uint64_t bytes) {
  PENSTOCK_CHECK(bus % kAxiBeatBytes == 0 && bytes % kAxiBeatBytes == 0 && bytes != 0,
                 "bus {:#x}, {} bytes: not whole beats", bus, bytes);
  PENSTOCK_CHECK(reinterpret_cast<std::uintptr_t>(data) % 8 == 0, "memory is not aligned to 8");
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), bus,
                                   [](const Range& r, std::uint64_t b) { return r.bus < b; });
  PENSTOCK_CHECK((at == ranges_.end() || at->bus - bus >= bytes) &&
                     (at == ranges_.begin() || bus - (at - 1)->bus >= (at - 1)->bytes),
                 "bus {:#x}, {} bytes: attached already", bus, bytes);
  ranges_.insert(at, Range{bus, bytes, static_cast<std::byte*>(data)});
}

void AxiMemory::detach(std::uint64_t bus) {
  const auto at = std::find_if(ranges_.begin(), ranges_.end(),
                               [bus](const Range& range) { return range.bus == bus; });
  PENSTOCK_CHECK(at != ranges_.end(), "bus {:#x}: nothing is attached there", bus);
  ranges_.erase(at);
}

void AxiMemory::fail(std::uint64_t bus, std::uint64_t bytes, bool reads, bool writes) {
  failures_.push_back(Failure{bus, bytes, reads, writes});
}

bool AxiMemory::fails(std::uint64_t bus, std::uint64_t bytes, bool write) const {
  return std::any_of(failures_.begin(), failures_.end(), [&](const Failure& f) {
    return (write ? f.writes : f.reads) && bus < f.bus + f.bytes && f.bus < bus + bytes;
  });
}

std::byte* AxiMemory::line(std::uint64_t bus) const {
  const auto holds = [bus](const Range& range) { return bus - range.bus < range.bytes; };
  if (last_ >= ranges_.size() || !holds(ranges_[last_])) {
    const auto at = std::find_if(ranges_.begin(), ranges_.end(), holds);
    if (at == ranges_.end()) return nullptr;
    last_ = static_cast<std::size_t>(at - ranges_.begin());
  }
  return ranges_[last_].data + (bus - ranges_[last_].bus);
}

AxiSlave::AxiSlave(AxiMemory& memory, const AxiConfig& config)
    : memory_(memory), config_(config), random_(config.seed) {
  PENSTOCK_CHECK(config.read_latency != 0 && config.write_latency != 0, "a latency is 1 at least");
  for (Mood* mood : {&ar_, &aw_, &w_, &r_, &b_}) *mood = draw_mood();
}

AxiSlave::Mood AxiSlave::draw_mood() {
  Mood mood;
  if (config_.fixed) return mood;
  switch (random_.below(4)) {
    case 0:  // always there
      break;
    case 1:  // short stalls, often
      mood.stall_one_in = 2 + random_.below(4);
      mood.stall_cycles = 1 + random_.below(3);
      break;
    case 2:  // long stalls, seldom
      mood.stall_one_in = 20 + random_.below(60);
      mood.stall_cycles = 20 + random_.below(40);
      break;
    default:
      mood.lazy = true;
      mood.stall_one_in = 2 + random_.below(8);
      mood.stall_cycles = 1 + random_.below(4);
      break;
  }
  return mood;
}

// Whether the channel is ready, or may answer, in the coming cycle.
bool AxiSlave::open(Mood& mood, bool valid_seen) {
  if (mood.left != 0) {
    --mood.left;
    return false;
  }
  if (random_.chance(mood.stall_one_in)) {
    mood.left = random_.below(mood.stall_cycles);
    return false;
  }
  return !mood.lazy || valid_seen;
}

std::uint64_t AxiSlave::latency(std::uint32_t cycles) {
  if (config_.fixed) return cycles;
  const std::uint32_t bound = random_.chance(16) ? 8 * cycles : 2 * cycles;
  return 1 + random_.below(bound);
}

std::uint8_t AxiSlave::judge(const Burst& burst, bool write) {
  const std::uint64_t bytes = std::uint64_t{burst.beats} * kAxiBeatBytes;
  const std::uint32_t one_in = write ? config_.write_error_one_in : config_.read_error_one_in;
  // A write is answered once, and acts as a whole or not at all.
  for (std::uint32_t beat = 0; write && beat < burst.beats; ++beat)
    if (memory_.line(burst.address + std::uint64_t{beat} * kAxiBeatBytes) == nullptr)
      return kAxiDecodeError;
  if (memory_.fails(burst.address, bytes, write)) return kAxiSlaveError;
  return !config_.fixed && random_.chance(one_in) ? kAxiSlaveError : kAxiOkay;
}

void AxiSlave::violation(std::string text) {
  if (violations_.size() < kMaxViolations)
    violations_.push_back(fmt::format("cycle {}: {}", now_, text));
}

void AxiSlave::check_address(const char* channel, std::uint64_t address, std::uint32_t beats) {
  if (address % kAxiBeatBytes != 0)
    violation(fmt::format("{}: address {:#x} is not aligned to a beat", channel, address));
  if (beats > kAxiMaxBeats)
    violation(fmt::format("{}: {} beats are more than {}", channel, beats, kAxiMaxBeats));
  if (address % kAxiPageBytes + beats * kAxiBeatBytes > kAxiPageBytes)
    violation(fmt::format("{}: {} beats at {:#x} cross 4 KiB", channel, beats, address));
}

void AxiSlave::check_held(const char* channel, Held& held, bool valid, bool taken,
                          const Held& now) {
  if (held.valid && !valid) violation(fmt::format("{}: valid fell before it was taken", channel));
  if (held.valid && valid &&
      (held.address != now.address || held.strobe != now.strobe || held.id != now.id ||
       held.length != now.length || held.data != now.data))
    violation(fmt::format("{}: changed before it was taken", channel));
  held = now;
  held.valid = valid && !taken;
}

void AxiSlave::sample(const AxiPort& port) {
  ++now_;
  ++counts_.cycles;
  if (port.arvalid != nullptr) {
    sample_read_data(port);
    sample_read_address(port);
  }
  if (port.awvalid != nullptr) {
    sample_write_response(port);
    sample_write_data(port);
    sample_write_address(port);
  }
}

void AxiSlave::sample_read_address(const AxiPort& port) {
  ar_seen_ = *port.arvalid != 0;
  Held now;
  if (ar_seen_) {
    now.address = *port.araddr;
    now.id = *port.arid;
    now.length = *port.arlen;
  }
  check_held("ar", ar_held_, ar_seen_, ar_ready_, now);
  counts_.ar_stalls += ar_seen_ && !ar_ready_ ? 1 : 0;
  if (!ar_seen_ || !ar_ready_) return;
  check_address("ar", now.address, now.length + 1u);
  Burst burst;
  burst.address = now.address;
  burst.id = now.id;
  burst.beats = static_cast<std::uint8_t>(std::min(now.length + 1u, kAxiMaxBeats));
  burst.due = now_ + latency(config_.read_latency);
  burst.response = judge(burst, false);
  if (!config_.fixed && random_.chance(2)) {
    burst.captured = true;
    burst.data.resize(burst.beats * kWords);
    for (std::uint32_t beat = 0; beat < burst.beats; ++beat) {
      const std::byte* line = memory_.line(burst.address + std::uint64_t{beat} * kAxiBeatBytes);
      if (line != nullptr) load_line(line, &burst.data[beat * kWords]);
    }
  }
  reads_.push_back(std::move(burst));
}

void AxiSlave::sample_read_data(const AxiPort& port) {
  if (!r_valid_) return;
  if (*port.rready == 0) {
    ++counts_.r_stalls;
    return;
  }
  r_valid_ = false;
  ++counts_.read_beats;
  Burst& burst = reads_[read_];
  ++burst.done;
  unfinished_ = !r_last_;
  mixed_with_ = burst.address;
  if (!r_last_) return;
  ++counts_.read_bursts;
  reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(read_));
}

void AxiSlave::sample_write_address(const AxiPort& port) {
  aw_seen_ = *port.awvalid != 0;
  Held now;
  if (aw_seen_) {
    now.address = *port.awaddr;
    now.id = *port.awid;
    now.length = *port.awlen;
  }
  check_held("aw", aw_held_, aw_seen_, aw_ready_, now);
  counts_.aw_stalls += aw_seen_ && !aw_ready_ ? 1 : 0;
  if (!aw_seen_ || !aw_ready_) return;
  check_address("aw", now.address, now.length + 1u);
  Burst burst;
  burst.address = now.address;
  burst.id = now.id;
  burst.beats = static_cast<std::uint8_t>(std::min(now.length + 1u, kAxiMaxBeats));
  burst.response = judge(burst, true);
  // A write that acts as its beats come must not overtake one of its ID that acts late.
  const bool behind = std::any_of(writes_.begin(), writes_.end(), [&](const Burst& other) {
    return other.captured && other.id == burst.id;
  });
  burst.captured = behind || (!config_.fixed && random_.chance(2));
  writes_.push_back(std::move(burst));
}

void AxiSlave::sample_write_data(const AxiPort& port) {
  w_seen_ = *port.wvalid != 0;
  Held now;
  if (w_seen_) {
    now.strobe = *port.wstrb;
    now.length = *port.wlast;
    std::memcpy(now.data.data(), port.wdata, kAxiBeatBytes);
  }
  check_held("w", w_held_, w_seen_, w_ready_, now);
  counts_.w_stalls += w_seen_ && !w_ready_ ? 1 : 0;
  if (!w_seen_) return;
  if (filling_ == writes_.size()) {
    violation("w: data is offered and no address was taken before");
    return;
  }
  if (w_ready_) take_write_beat(port);
}

void AxiSlave::take_write_beat(const AxiPort& port) {
  Burst& burst = writes_[filling_];
  ++counts_.write_beats;
  std::uint64_t words[kWords];
  std::memcpy(words, port.wdata, kAxiBeatBytes);
  if (burst.captured) {
    burst.data.insert(burst.data.end(), words, words + kWords);
    burst.strobes.push_back(*port.wstrb);
  } else {
    std::byte* line = memory_.line(burst.address + std::uint64_t{burst.done} * kAxiBeatBytes);
    if (burst.response == kAxiOkay) store_line(line, words, *port.wstrb);
  }
  ++burst.done;
  const bool last = burst.done == burst.beats;
  if ((*port.wlast != 0) != last)
    violation(fmt::format("w: wlast is {} at beat {} of {}", *port.wlast, burst.done, burst.beats));
  if (!last) return;
  burst.complete = true;
  burst.due = now_ + latency(config_.write_latency);
  ++filling_;
}

void AxiSlave::sample_write_response(const AxiPort& port) {
  if (!b_valid_) return;
  if (*port.bready == 0) {
    ++counts_.b_stalls;
    return;
  }
  b_valid_ = false;
  ++counts_.write_bursts;
  writes_.erase(writes_.begin() + static_cast<std::ptrdiff_t>(write_));
  --filling_;
}

// Which burst may answer next: the oldest of its ID, by chance one of those that are due.
void AxiSlave::choose_read() {
  std::uint64_t seen[4] = {};
  std::uint32_t candidates = 0;
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    const std::uint8_t id = reads_[i].id;
    if ((seen[id / 64] >> id % 64 & 1) != 0) continue;
    seen[id / 64] |= std::uint64_t{1} << id % 64;
    if (reads_[i].due <= now_ + 1) {
      ++candidates;
      if (candidates == 1 || random_.below(candidates) == 0) read_ = i;
    }
    if (config_.fixed) break;
  }
  if (candidates == 0) return;
  if (reads_[read_].done == 0 && read_ != 0) ++counts_.reordered;
  if (unfinished_ && reads_[read_].address != mixed_with_) ++counts_.interleaved;
  fill_beat(reads_[read_]);
  r_valid_ = true;
}

void AxiSlave::fill_beat(Burst& burst) {
  const std::byte* line = memory_.line(burst.address + std::uint64_t{burst.done} * kAxiBeatBytes);
  r_last_ = burst.done + 1 == burst.beats;
  r_response_ = line == nullptr ? std::uint8_t{kAxiDecodeError} : burst.response;
  if (r_response_ != kAxiOkay) {
    if (burst.done == 0) ++counts_.read_errors;
    for (std::uint64_t& word : r_data_) word = random_.next();
  } else if (burst.captured) {
    std::memcpy(r_data_, &burst.data[burst.done * kWords], kAxiBeatBytes);
  } else {
    load_line(line, r_data_);
  }
}

void AxiSlave::choose_write() {
  std::uint64_t seen[4] = {};
  std::uint32_t candidates = 0;
  for (std::size_t i = 0; i < filling_; ++i) {
    const std::uint8_t id = writes_[i].id;
    if ((seen[id / 64] >> id % 64 & 1) != 0) continue;
    seen[id / 64] |= std::uint64_t{1} << id % 64;
    if (writes_[i].due <= now_ + 1) {
      ++candidates;
      if (candidates == 1 || random_.below(candidates) == 0) write_ = i;
    }
    if (config_.fixed) break;
  }
  if (candidates == 0) return;
  Burst& burst = writes_[write_];
  if (write_ != 0) ++counts_.reordered;
  if (burst.captured && burst.response == kAxiOkay) apply(burst);
  if (burst.response != kAxiOkay) ++counts_.write_errors;
  b_valid_ = true;
}

void AxiSlave::apply(const Burst& burst) {
  for (std::uint32_t beat = 0; beat < burst.beats; ++beat)
    store_line(memory_.line(burst.address + std::uint64_t{beat} * kAxiBeatBytes),
               &burst.data[beat * kWords], burst.strobes[beat]);
}

void AxiSlave::drive(const AxiPort& port) {
  if (port.arvalid != nullptr) drive_read(port);
  if (port.awvalid != nullptr) drive_write(port);
}

void AxiSlave::drive_read(const AxiPort& port) {
  ar_ready_ = open(ar_, ar_seen_) && reads_.size() < config_.max_reads;
  *port.arready = ar_ready_ ? 1 : 0;
  if (r_valid_) return;  // stays as it is
  if (open(r_, true)) choose_read();
  *port.rvalid = r_valid_ ? 1 : 0;
  if (r_valid_) {
    std::memcpy(port.rdata, r_data_, kAxiBeatBytes);
    *port.rid = reads_[read_].id;
    *port.rresp = r_response_;
    *port.rlast = r_last_ ? 1 : 0;
    return;
  }
  const std::uint64_t garbage = random_.next();
  for (std::uint32_t i = 0; i < kWords; ++i) {
    const std::uint64_t word = garbage * (2 * i + 1);
    std::memcpy(port.rdata + std::size_t{2} * i, &word, 8);
  }
  *port.rid = garbage & 0xf;
  *port.rresp = garbage >> 8 & 3;
  *port.rlast = garbage >> 16 & 1;
}

void AxiSlave::drive_write(const AxiPort& port) {
  aw_ready_ = open(aw_, aw_seen_) && writes_.size() < config_.max_writes;
  w_ready_ = open(w_, w_seen_);
  *port.awready = aw_ready_ ? 1 : 0;
  *port.wready = w_ready_ ? 1 : 0;
  if (b_valid_) return;
  if (open(b_, true)) choose_write();
  *port.bvalid = b_valid_ ? 1 : 0;
  const std::uint64_t garbage = random_.next();
  *port.bid = b_valid_ ? writes_[write_].id : static_cast<std::uint8_t>(garbage & 0xf);
  *port.bresp = b_valid_ ? writes_[write_].response : static_cast<std::uint8_t>(garbage >> 8 & 3);
}

void AxiSlave::reset() {
  reads_.clear();
  writes_.clear();
  filling_ = 0;
  r_valid_ = b_valid_ = unfinished_ = false;
  ar_ready_ = aw_ready_ = w_ready_ = false;
  ar_seen_ = aw_seen_ = w_seen_ = false;
  ar_held_ = aw_held_ = w_held_ = Held{};
}

}  // namespace penstock::sim
