#include "penstock/sim/systemc/card.h"

#include <algorithm>
#include <cstring>

#include "penstock/sim/systemc/register_offsets.h"
#include "penstock/sim/systemc/selector.h"

namespace penstock::systemc {

void Card::process(const std::function<void()>& body) {
  while (true) {
    try {
      body();
    } catch (const WasReset&) {
    }
  }
}

Card::Card(const sc_core::sc_module_name& name, const Timing& timing, const sc_core::sc_time& cycle)
    : sc_core::sc_module(name),
      registers("registers"),
      ctl("ctl"),
      data("data"),
      timing_(timing),
      cycle_(cycle),
      started_(sc_core::sc_time_stamp()),
      selector_(std::make_unique<Selector>(*this)) {
  registers.register_b_transport(this, &Card::register_transport);
  SC_HAS_PROCESS(Card);
  SC_THREAD(fetch_process);
  SC_THREAD(command_process);
  SC_THREAD(read_process);
  SC_THREAD(write_process);
  SC_THREAD(select_process);
  SC_METHOD(run_due);
  dont_initialize();
  sensitive << due_event_;
}

Card::~Card() = default;

bool Card::interrupt() const {
  return (cause_ & mask_) != 0 || (error_latched_ && error_mask_ != 0);
}

// ---- time ----

void Card::pause(const sc_core::sc_time& time) {
  const std::uint64_t epoch = epoch_;
  if (time > sc_core::SC_ZERO_TIME) wait(time);
  if (epoch_ != epoch) throw WasReset{};
}
void Card::pause_until(const sc_core::sc_time& time) {
  const sc_core::sc_time now = sc_core::sc_time_stamp();
  if (time > now) pause(time - now);
}
void Card::pause_for(const sc_core::sc_event& event) {
  const std::uint64_t epoch = epoch_;
  wait(event);
  if (epoch_ != epoch) throw WasReset{};
}

void Card::later(const sc_core::sc_time& delay, std::function<void()> action) {
  due_.emplace(sc_core::sc_time_stamp() + delay, std::move(action));
  // An earlier notification that stands is kept by the kernel.
  due_event_.notify(delay);
}
void Card::run_due() {
  while (!due_.empty() && due_.begin()->first <= sc_core::sc_time_stamp()) {
    const std::function<void()> action = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    action();
  }
  if (!due_.empty()) due_event_.notify(due_.begin()->first - sc_core::sc_time_stamp());
}

void Card::begin_reset() {
  ++epoch_;
  resetting_ = true;
  enabled_ = false;
  cause_ = mask_ = 0;
  error_latched_ = false;
  error_mask_ = 0;
  queues_ = {};
  windows_ = {};
  waiters_ = {};
  due_.clear();
  jobs_.clear();
  in_flight_.clear();
  chunks_.clear();
  selects_.clear();
  counters_ = {};
  arrival_ = write_free_ = job_end_ = completion_free_ = sc_core::SC_ZERO_TIME;
  selector_ = std::make_unique<Selector>(*this);
  // What was on the bus has ended by then.
  constexpr std::uint32_t kDrain = 64;
  later(cycles(kDrain), [this] { resetting_ = false; });
}

// ---- registers ----

void Card::register_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  constexpr std::uint32_t kAccess = 4;  // cycles of an AXI4-Lite access
  delay += cycles(kAccess);
  payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  if (payload.get_data_length() != sizeof(std::uint32_t)) {
    payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return;
  }
  const auto offset = static_cast<std::uint32_t>(payload.get_address());
  if (offset % 4 != 0 || payload.get_address() >= kRegisterBytes) return;
  std::uint32_t value = 0;
  bool known = false;
  if (payload.is_write()) {
    std::memcpy(&value, payload.get_data_ptr(), sizeof(value));
    known = write_register(offset, value);
  } else {
    known = read_register(offset, &value);
    std::memcpy(payload.get_data_ptr(), &value, sizeof(value));
  }
  if (known) payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

bool Card::read_register(std::uint32_t offset, std::uint32_t* value) {
  if (offset >= kWindowsBase) return read_window(offset - kWindowsBase, value);
  if (offset >= kQueuesBase) return read_queue(offset - kQueuesBase, value);
  return read_global(offset, value);
}
bool Card::write_register(std::uint32_t offset, std::uint32_t value) {
  if (offset >= kWindowsBase) return write_window(offset - kWindowsBase, value);
  if (offset >= kQueuesBase) return write_queue(offset - kQueuesBase, value);
  return write_global(offset, value);
}

namespace {

bool read_capability(std::uint32_t offset, std::uint32_t* value) {
  using Limits = CardLimits;
  switch (offset) {
    case kId:
      *value = kIdValue;
      return true;
    case kVersion:
      *value = kVersionValue;
      return true;
    case kCapOpcodes:
      *value = Limits::kOpcodes;
      return true;
    case kCapLimits:
      *value = Limits::kQueues | Limits::kWindows << 8 | PENSTOCK_MAX_SOURCES << 16 |
               PENSTOCK_MAX_DESTINATIONS << 24;
      return true;
    case kCapMaxBytesLog2:
      *value = Limits::kMaxBytesLog2;
      return true;
    case kCapRows:
      *value = SelectLimits::kRows;
      return true;
    case kCapTable:
      *value = SelectLimits::kResources | SelectLimits::kFree << 8 | SelectLimits::kBits << 16;
      return true;
    case kCapFilters:
      *value = SelectLimits::kFilters;
      return true;
    case kCapScores:
      *value = SelectLimits::kScores;
      return true;
    case kCapNormalise:
      *value = SelectLimits::kNormalise | SelectLimits::kTies << 8 | PENSTOCK_MAX_BEST << 16;
      return true;
    default:
      break;
  }
  if (offset < kCapTypes || offset >= kCapTypes + 4 * PENSTOCK_TYPE_COUNT) return false;
  const std::uint32_t type = (offset - kCapTypes) / 4;
  *value = Limits::redops(type) | Limits::out_types(type) << 16;
  return true;
}

}  // namespace

bool Card::read_global(std::uint32_t offset, std::uint32_t* value) {
  if (read_capability(offset, value)) return true;
  if (offset >= kErrorDescriptor && offset < kErrorDescriptor + sizeof(error_record_)) {
    *value = error_record_[(offset - kErrorDescriptor) / 4];
    return true;
  }
  if (offset >= kCountersBase && offset < kCountersBase + 8 * kCounters) {
    counters_[kCycles] =
        static_cast<std::uint64_t>((sc_core::sc_time_stamp() - started_) / cycle_ + 0.5);
    *value = half(counters_[(offset - kCountersBase) / 8], offset);
    return true;
  }
  bool idle = true;
  for (const Queue& queue : queues_) idle = idle && queue.idle();
  switch (offset) {
    case kCapLanes:
      *value = timing_.lanes;
      return true;
    case kControl:
      *value = enabled_ ? 1 : 0;
      return true;
    case kStatus:
      *value = (resetting_ ? 1u : 0) | (idle ? 2u : 0) | (error_latched_ ? 4u : 0);
      return true;
    case kClockKhz:
      *value = clock_khz_;
      return true;
    case kIrqCause:
    case kIrqCause + 4:
      *value = half(cause_, offset);
      return true;
    case kIrqMask:
    case kIrqMask + 4:
      *value = half(mask_, offset);
      return true;
    case kIrqError:
      *value = error_latched_ ? 1 : 0;
      return true;
    case kIrqErrorMask:
      *value = error_mask_;
      return true;
    case kErrorCode:
      *value = error_code_;
      return true;
    case kErrorSequence:
      *value = error_sequence_;
      return true;
    case kErrorAddress:
    case kErrorAddress + 4:
      *value = half(error_address_, offset);
      return true;
    default:
      return false;
  }
}

bool Card::write_global(std::uint32_t offset, std::uint32_t value) {
  switch (offset) {
    case kControl:
      if ((value & 2) != 0) {
        begin_reset();
        return true;
      }
      enabled_ = (value & 1) != 0 && !resetting_;
      fetch_event_.notify(cycles(timing_.doorbell));
      return true;
    case kClockKhz:
      clock_khz_ = value;
      return true;
    case kIrqCause:
    case kIrqCause + 4:
      cause_ &= ~(std::uint64_t{value} << (offset % 8 == 0 ? 0 : 32));
      return true;
    case kIrqMask:
    case kIrqMask + 4:
      set_half(&mask_, offset, value);
      return true;
    case kIrqError:
      if ((value & 1) != 0) error_latched_ = false;
      return true;
    case kIrqErrorMask:
      error_mask_ = value & 1;
      return true;
    default:
      return false;
  }
}

// The first error stays until it is cleared.
void Card::report_error(CardError code, std::uint32_t queue, std::uint32_t sequence,
                        std::uint64_t bus, const penstock_descriptor& record) {
  if (error_latched_) return;
  error_latched_ = true;
  error_code_ = static_cast<std::uint32_t>(code) | queue << 8;
  error_sequence_ = sequence;
  error_address_ = bus;
  std::memcpy(error_record_.data(), &record, sizeof(record));
}

// ---- transfers ----

bool Card::transport(bool on_data, bool write, std::uint64_t bus, void* bytes, std::uint64_t n,
                     sc_core::sc_time* delay) {
  tlm::tlm_generic_payload payload;
  payload.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  payload.set_address(bus);
  payload.set_data_ptr(static_cast<unsigned char*>(bytes));
  payload.set_data_length(static_cast<unsigned>(n));
  payload.set_streaming_width(static_cast<unsigned>(n));
  payload.set_byte_enable_ptr(nullptr);
  payload.set_dmi_allowed(false);
  payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  counters_[on_data ? (write ? kDataWriteBeats : kDataReadBeats)
                    : (write ? kCtlWriteBeats : kCtlReadBeats)] += beats(bus, n);
  if (on_data)
    data->b_transport(payload, *delay);
  else
    ctl->b_transport(payload, *delay);
  return payload.is_response_ok();
}

Card::Transfer Card::transfer(bool on_data, bool write, std::uint64_t bus, void* bytes,
                              std::uint64_t n, sc_core::sc_time* delay) {
  constexpr std::uint64_t kPage = 4096;
  Transfer result;
  sc_core::sc_time longest = *delay;
  for (std::uint64_t at = 0; at < n;) {
    const std::uint64_t part = std::min(n - at, kPage - (bus + at) % kPage);
    sc_core::sc_time latency = *delay;
    if (!transport(on_data, write, bus + at, static_cast<unsigned char*>(bytes) + at, part,
                   &latency) &&
        result.ok) {
      result.ok = false;
      result.bus = (bus + at) / 64 * 64;
    }
    longest = std::max(longest, latency);
    at += part;
  }
  *delay = longest;
  return result;
}

}  // namespace penstock::systemc
