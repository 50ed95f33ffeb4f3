#include "penstock/drivers/card/card.h"

#include <algorithm>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/descriptor/register_map.h"

namespace penstock::card {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

const char* error_sentence(std::uint32_t code) {
  switch (code) {
    case PENSTOCK_CARD_ERROR_FETCH:
      return "a descriptor could not be read; the queue is stopped";
    case PENSTOCK_CARD_ERROR_COMPLETION:
      return "a completion could not be written; the queue is stopped";
    case PENSTOCK_CARD_ERROR_DOORBELL:
      return "a doorbell went backwards or past the ring; the queue is stopped";
    case PENSTOCK_CARD_ERROR_OPERAND:
      return "memory answered an operand's burst with an error";
    default:
      return "an error of a kind that this driver does not know";
  }
}

}  // namespace

Card::Card(std::unique_ptr<Bus> bus, Identity identity, const Patience& patience)
    : bus_(std::move(bus)),
      identity_(std::move(identity)),
      patience_(patience),
      taken_(identity_.queues) {}

Result<std::shared_ptr<Card>> Card::open(std::unique_ptr<Bus> bus, const Patience& patience) {
  PENSTOCK_ASSIGN(Identity identity, read_identity(*bus));
  std::shared_ptr<Card> card(new Card(std::move(bus), std::move(identity), patience));
  PENSTOCK_TRY(card->start());
  return card;
}

Card::~Card() {
  for (const auto& [data, use] : memory_) bus_->detach(use.bus);
}

// What an earlier owner left under way ends here, and its queues with it.
Status Card::start() {
  Platform& platform = Platform::host();
  bus_->write(PENSTOCK_REGISTER_CONTROL, PENSTOCK_REGISTER_CONTROL_SOFT_RESET_MASK);
  const std::uint64_t deadline = platform.now_ns() + patience_.answer_ms * kNsPerMs;
  while (true) {
    const std::uint32_t status = bus_->read(PENSTOCK_REGISTER_STATUS);
    if (status != kNoAnswer && (status & PENSTOCK_REGISTER_STATUS_RESETTING_MASK) == 0) break;
    if (platform.now_ns() > deadline)
      return error(Code::io_error, "the card at {} does not end its reset within {} ms",
                   bus_->description(), patience_.answer_ms);
    bus_->idle();
  }
  bus_->write(PENSTOCK_REGISTER_CLOCK_KHZ, bus_->clock_khz());
  // Completions are polled for, unless waiting is done by interrupt.
  const std::uint32_t queues = bus_->interrupts() ? UINT32_MAX : 0;
  bus_->write(PENSTOCK_REGISTER_IRQ_MASK_LO, queues);
  bus_->write(PENSTOCK_REGISTER_IRQ_MASK_HI, queues);
  bus_->write(PENSTOCK_REGISTER_IRQ_ERROR_MASK, 0);
  bus_->write(PENSTOCK_REGISTER_CONTROL, PENSTOCK_REGISTER_CONTROL_ENABLE_MASK);
  return {};
}

void Card::reset(std::uint64_t epoch, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_.load(std::memory_order_relaxed) || lost()) return;
  log::warn("card: {}; it is reset, and what was under way fails with io_error", why);
  if (const Status started = start(); !started.ok()) {
    log::warn("card: {}; it is given up", started.message());
    lost_.store(true, std::memory_order_release);
  }
  epoch_.store(epoch + 1, std::memory_order_release);
}

Result<std::uint32_t> Card::take_queue() {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(taken_.begin(), taken_.end(), false);
  if (found == taken_.end())
    return error(Code::no_space, "the card's {} queues are all in use", taken_.size());
  *found = true;
  return static_cast<std::uint32_t>(found - taken_.begin());
}

void Card::give_queue(std::uint32_t queue) {
  const std::lock_guard lock(mutex_);
  taken_[queue] = false;
}

Result<std::uint64_t> Card::use_memory(std::byte* data, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = memory_.find(data);
  if (found != memory_.end()) {
    PENSTOCK_CHECK(found->second.bytes == bytes, "two lengths for one device");
    ++found->second.users;
    return found->second.bus;
  }
  PENSTOCK_ASSIGN(const std::uint64_t bus, bus_->attach(data, bytes));
  memory_.emplace(data, Use{bus, bytes, 1});
  return bus;
}

void Card::give_memory(std::byte* data) {
  const std::lock_guard lock(mutex_);
  const auto found = memory_.find(data);
  PENSTOCK_CHECK(found != memory_.end(), "memory that is not in use");
  if (--found->second.users != 0) return;
  bus_->detach(found->second.bus);
  memory_.erase(found);
}

std::uint64_t Card::progress() {
  std::uint64_t sum = 0;
  for (const std::uint32_t counter :
       {PENSTOCK_REGISTER_COMPLETIONS_LO, PENSTOCK_REGISTER_DATA_READ_BEATS_LO,
        PENSTOCK_REGISTER_DATA_WRITE_BEATS_LO, PENSTOCK_REGISTER_DECISIONS_LO,
        PENSTOCK_REGISTER_ROWS_SCANNED_LO})
    sum += bus_->read(counter);
  return sum;
}

std::uint64_t Card::busy_cycles() {
  // The upper half again, in case the lower one ran over in between.
  for (std::uint32_t high = bus_->read(PENSTOCK_REGISTER_BUSY_CYCLES_HI);;) {
    const std::uint32_t low = bus_->read(PENSTOCK_REGISTER_BUSY_CYCLES_LO);
    const std::uint32_t again = bus_->read(PENSTOCK_REGISTER_BUSY_CYCLES_HI);
    if (again == high) return std::uint64_t{high} << 32 | low;
    high = again;
  }
}

void Card::report_error() {
  const std::uint32_t status = bus_->read(PENSTOCK_REGISTER_STATUS);
  if (status == kNoAnswer || (status & PENSTOCK_REGISTER_STATUS_ERROR_MASK) == 0) return;
  const std::uint32_t code = bus_->read(PENSTOCK_REGISTER_ERROR_CODE);
  const std::uint64_t address = bus_->read(PENSTOCK_REGISTER_ERROR_ADDRESS_LO) |
                                std::uint64_t{bus_->read(PENSTOCK_REGISTER_ERROR_ADDRESS_HI)} << 32;
  log::warn(
      "card: queue {}, descriptor {}, bus address {:#x}: {}",
      (code & PENSTOCK_REGISTER_ERROR_CODE_QUEUE_MASK) >> PENSTOCK_REGISTER_ERROR_CODE_QUEUE_SHIFT,
      bus_->read(PENSTOCK_REGISTER_ERROR_SEQUENCE), address,
      error_sentence(code & PENSTOCK_REGISTER_ERROR_CODE_CODE_MASK));
  bus_->write(PENSTOCK_REGISTER_IRQ_ERROR, PENSTOCK_REGISTER_IRQ_ERROR_ERROR_MASK);
}

}  // namespace penstock::card
