#include "penstock/drivers/card/card_queue.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/descriptor/register_map.h"

namespace penstock::card {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kLookEveryMs = 10;
constexpr std::uint32_t kMostDepth = 1024;
// A simulated card lives only in calls of advance(): it is stuck after so many of them, too.
constexpr std::uint32_t kStuckTurns = 1000;

constexpr std::uint32_t kState = PENSTOCK_REGISTER_QUEUE_STATE;
constexpr std::uint32_t kControl = PENSTOCK_REGISTER_QUEUE_CONTROL;
constexpr std::uint32_t kEnable = PENSTOCK_REGISTER_QUEUE_CONTROL_ENABLE_MASK;
constexpr std::uint32_t kCancel = PENSTOCK_REGISTER_QUEUE_CONTROL_CANCEL_MASK;

std::uint64_t now() { return Platform::host().now_ns(); }

// The word that a card writes last.
std::uint64_t sequence_at(std::byte* completion) {
  auto* word =
      reinterpret_cast<std::uint64_t*>(completion + offsetof(penstock_completion, sequence));
  return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}

}  // namespace

CardQueue::CardQueue(std::shared_ptr<Card> card, std::uint32_t number)
    : card_(std::move(card)),
      number_(number),
      base_(PENSTOCK_REGISTER_QUEUE + number * PENSTOCK_REGISTER_QUEUE_STRIDE) {}

Result<std::unique_ptr<CardQueue>> CardQueue::open(std::shared_ptr<Card> card, const Queue& queue) {
  if (card->lost()) return error(Code::io_error, "the card does not answer any more");
  if (queue.pool() != nullptr && queue.pool()->coherence() == Coherence::software &&
      card->bus().behind_caches())
    return error(Code::unsupported,
                 "the card sees memory through this host's caches, which is no use on a pool that "
                 "is not coherent between hosts");
  PENSTOCK_ASSIGN(const std::uint32_t number, card->take_queue());
  std::unique_ptr<CardQueue> made(new CardQueue(std::move(card), number));
  PENSTOCK_TRY(made->add_windows(queue));
  PENSTOCK_TRY(made->set_up(queue));
  return made;
}

Result<std::unique_ptr<CardQueue>> CardQueue::open(std::shared_ptr<Card> card, const Queue& queue,
                                                   std::vector<CardWindow> windows) {
  if (card->lost()) return error(Code::io_error, "the card does not answer any more");
  PENSTOCK_ASSIGN(const std::uint32_t number, card->take_queue());
  std::unique_ptr<CardQueue> made(new CardQueue(std::move(card), number));
  made->windows_ = std::move(windows);
  PENSTOCK_TRY(made->set_up(queue));
  return made;
}

void CardQueue::write_wide(std::uint32_t at, std::uint64_t value) {
  card_->bus().write(at, static_cast<std::uint32_t>(value));
  card_->bus().write(at + 4, static_cast<std::uint32_t>(value >> 32));
}

Status CardQueue::add_windows(const Queue& queue) {
  if (queue.pool() == nullptr) return {};
  std::vector<Window> windows = queue.config().windows;
  if (windows.empty()) {
    for (std::uint32_t device = 0; device < queue.pool()->device_count(); ++device) {
      const DeviceData data = queue.pool()->device_data(device);
      windows.push_back({data.address, data.bytes, true, true});
    }
  }
  std::erase_if(windows, [](const Window& window) { return window.bytes == 0; });
  if (windows.size() > card_->identity().windows)
    return error(Code::unsupported, "the queue has {} windows, and the card has {} for one",
                 windows.size(), card_->identity().windows);
  for (const Window& window : windows) PENSTOCK_TRY(add_window(*queue.pool(), window));
  return {};
}

Status CardQueue::set_up(const Queue& queue) {
  depth_ = std::min(queue.depth(), kMostDepth);
  timeout_ms_ = queue.config().default_timeout_ms;
  PENSTOCK_ASSIGN(
      ring_, card_->bus().allocate(std::uint64_t{depth_} *
                                   (sizeof(penstock_descriptor) + sizeof(penstock_completion))));
  return enable();
}

// Queue::create saw that a window lies in the data of a device.
Status CardQueue::add_window(const Pool& pool, const Window& window) {
  const DeviceData data = pool.device_data(penstock_address_space(window.base));
  std::byte* memory = pool.resolve(data.address, data.bytes);
  if (memory == nullptr || data.bytes == 0)
    return error(Code::unsupported, "the pool has no memory that a card could be given at {:#x}",
                 window.base);
  PENSTOCK_ASSIGN(const std::uint64_t bus, card_->use_memory(memory, data.bytes));
  memory_.push_back(memory);
  windows_.push_back(
      {window.base, window.bytes, bus + (window.base - data.address), window.read, window.write});
  return {};
}

// Writes all of the queue's registers: nothing of them has to be known.
Status CardQueue::enable() {
  epoch_ = card_->epoch();
  handed_on_ = collected_ = 0;
  cancel_told_ = false;
  std::memset(ring_.data, 0, ring_.bytes);
  const std::uint64_t descriptors = ring_.bus;
  write_wide(base_ + PENSTOCK_REGISTER_QUEUE_RING_LO, descriptors);
  write_wide(base_ + PENSTOCK_REGISTER_QUEUE_COMPLETIONS_LO,
             descriptors + depth_ * sizeof(penstock_descriptor));
  write(PENSTOCK_REGISTER_QUEUE_CONFIG, static_cast<std::uint32_t>(std::countr_zero(depth_)));
  write(PENSTOCK_REGISTER_QUEUE_TIMEOUT_MS, timeout_ms_);
  std::uint32_t at = PENSTOCK_REGISTER_WINDOW + number_ * PENSTOCK_REGISTER_WINDOW_STRIDE;
  for (const CardWindow& window : windows_) {
    write_wide(at + PENSTOCK_REGISTER_WINDOW_BASE_LO, window.base);
    write_wide(at + PENSTOCK_REGISTER_WINDOW_BYTES_LO, window.bytes);
    write_wide(at + PENSTOCK_REGISTER_WINDOW_BUS_LO, window.bus);
    card_->bus().write(at + PENSTOCK_REGISTER_WINDOW_RIGHTS,
                       (window.read ? PENSTOCK_REGISTER_WINDOW_RIGHTS_READ_MASK : 0u) |
                           (window.write ? PENSTOCK_REGISTER_WINDOW_RIGHTS_WRITE_MASK : 0u));
    at += PENSTOCK_REGISTER_WINDOW_STRIDE2;
  }
  write(PENSTOCK_REGISTER_QUEUE_WINDOWS, static_cast<std::uint32_t>(windows_.size()));
  write(kControl, kEnable);
  const std::uint32_t state = read(kState);
  if (state == kNoAnswer || (state & PENSTOCK_REGISTER_QUEUE_STATE_ENABLED_MASK) == 0)
    return error(Code::io_error, "queue {} of the card does not come up: its state is {:#x}",
                 number_, state);
  return {};
}

CardQueue::~CardQueue() {
  Bus& bus = card_->bus();
  if (ring_.data != nullptr && epoch_ == card_->epoch() && !card_->lost()) {
    if (handed_on_ != collected_) write(kControl, kEnable | kCancel);
    const std::uint64_t deadline = now() + card_->patience().answer_ms * kNsPerMs;
    const std::uint32_t at_rest =
        PENSTOCK_REGISTER_QUEUE_STATE_IDLE_MASK | PENSTOCK_REGISTER_QUEUE_STATE_STOPPED_MASK;
    while (epoch_ == card_->epoch()) {
      const std::uint32_t state = read(kState);
      if (state != kNoAnswer && (state & at_rest) != 0 &&
          (state & PENSTOCK_REGISTER_QUEUE_STATE_IDLE_MASK) != 0)
        break;
      if (now() > deadline) {
        card_->reset(epoch_, fmt::format("queue {} does not come to rest", number_));
        break;
      }
      bus.idle();
    }
    write(kControl, 0);
  }
  if (ring_.data != nullptr) bus.release(ring_);
  for (std::byte* memory : memory_) card_->give_memory(memory);
  card_->give_queue(number_);
}

std::uint32_t CardQueue::advance(Queue& queue) {
  if (card_->lost()) return fail(queue, PENSTOCK_IO_ERROR, true);
  if (epoch_ != card_->epoch()) return begin_again(queue);
  follow_cancel(queue);
  std::uint32_t completions = 0;
  if (queue.cancelled() || cancel_told_)
    completions += cancel_unsent(queue);
  else
    hand_on(queue);
  completions += collect(queue);
  if (handed_on_ == collected_) {
    quiet_since_ns_ = 0;
    return completions;
  }
  if (completions == 0) {
    card_->bus().idle();
    completions = collect(queue);
  }
  return completions != 0 ? completions : watch(queue);
}

// The card's cancel bit follows the queue's. It falls only when the card has nothing left, so that
// all that was cancelled completes as cancelled.
void CardQueue::follow_cancel(const Queue& queue) {
  if (queue.cancelled() && !cancel_told_ && handed_on_ != collected_) {
    write(kControl, kEnable | kCancel);
    cancel_told_ = true;
  } else if (!queue.cancelled() && cancel_told_ && handed_on_ == collected_) {
    write(kControl, kEnable);
    cancel_told_ = false;
  }
}

// What the card has not seen comes after what it has.
std::uint32_t CardQueue::cancel_unsent(Queue& queue) {
  std::uint32_t completions = 0;
  for (; handed_on_ == collected_ && queue.cancelled() && queue.front() != nullptr; ++completions)
    queue.complete(PENSTOCK_CANCELLED);
  return completions;
}

void CardQueue::hand_on(const Queue& queue) {
  const std::uint64_t before = handed_on_;
  while (handed_on_ - collected_ < depth_) {
    const penstock_descriptor* next =
        queue.front(static_cast<std::uint32_t>(handed_on_ - collected_));
    if (next == nullptr) break;
    std::memcpy(ring_.data + (handed_on_ & (depth_ - 1)) * sizeof(*next), next, sizeof(*next));
    ++handed_on_;
  }
  if (handed_on_ == before) return;
  std::atomic_thread_fence(std::memory_order_release);
  write(PENSTOCK_REGISTER_QUEUE_TAIL, static_cast<std::uint32_t>(handed_on_));
}

std::uint32_t CardQueue::collect(Queue& queue) {
  std::uint32_t completions = 0;
  std::byte* const ring = ring_.data + depth_ * sizeof(penstock_descriptor);
  while (collected_ != handed_on_) {
    std::byte* at = ring + (collected_ & (depth_ - 1)) * sizeof(penstock_completion);
    if (sequence_at(at) != collected_ + 1) break;
    penstock_completion completion, translated;
    std::memcpy(&completion, at, sizeof(completion));
    if (!take(queue, completion, &translated)) {
      log::warn("card: queue {}, completion {} answers cookie {:#x} with status {}, field {}",
                number_, collected_ + 1, completion.cookie, completion.status, completion.field);
      translated = {0, PENSTOCK_INTERNAL, PENSTOCK_FIELD_NONE, 0, 0};
    }
    ++collected_;
    queue.complete(translated.status, translated.field, translated.detail);
    ++completions;
    if (completion.status == PENSTOCK_IO_ERROR) card_->report_error();
  }
  return completions;
}

// False for what no card may answer. A descriptor that could not be read has no cookie.
bool CardQueue::take(const Queue& queue, const penstock_completion& completion,
                     penstock_completion* translated) const {
  *translated = completion;
  const bool unread =
      completion.status == PENSTOCK_IO_ERROR && completion.field == PENSTOCK_FIELD_NONE;
  if (completion.status == PENSTOCK_IO_ERROR)
    translated->detail = unread ? 0 : penstock_address_of(completion.detail);
  return completion.status < PENSTOCK_STATUS_COUNT &&
         completion.field < PENSTOCK_FIELD_ENUM_COUNT &&
         (completion.cookie == queue.front()->cookie || (unread && completion.cookie == 0));
}

// 0 for what lies in no window.
std::uint64_t CardQueue::penstock_address_of(std::uint64_t bus) const {
  for (const CardWindow& window : windows_)
    // The card names whole beats, which may begin before the window.
    if (bus + PENSTOCK_CACHE_LINE > window.bus && bus < window.bus + window.bytes)
      return window.base + (std::max(bus, window.bus) - window.bus);
  return 0;
}

std::uint32_t CardQueue::watch(Queue& queue) {
  const std::uint64_t at = now();
  if (quiet_since_ns_ == 0) {
    quiet_since_ns_ = at;
    next_look_ns_ = at + kLookEveryMs * kNsPerMs;
    quiet_turns_ = 0;
    seen_progress_ = card_->progress();
  }
  ++quiet_turns_;
  return at < next_look_ns_ ? 0 : look(queue, at);
}

// Nothing came for a while: has the card stopped, or does it have a reason?
std::uint32_t CardQueue::look(Queue& queue, std::uint64_t now_ns) {
  next_look_ns_ = now_ns + kLookEveryMs * kNsPerMs;
  const std::uint32_t state = read(kState);
  if (state != kNoAnswer && (state & PENSTOCK_REGISTER_QUEUE_STATE_STOPPED_MASK) != 0 &&
      (state & PENSTOCK_REGISTER_QUEUE_STATE_IDLE_MASK) != 0) {
    // What it had begun is complete.
    std::uint32_t completions = collect(queue);
    if (completions != 0) return completions;
    card_->report_error();
    completions = fail(queue, PENSTOCK_IO_ERROR, false);
    write(kControl, 0);
    if (const Status enabled = enable(); !enabled.ok()) card_->reset(epoch_, enabled.message());
    return completions;
  }
  const std::uint64_t progress = card_->progress();
  const bool waiting =
      state != kNoAnswer && (state & PENSTOCK_REGISTER_QUEUE_STATE_WAITING_MASK) != 0;
  if (waiting || (state != kNoAnswer && progress != seen_progress_)) {
    seen_progress_ = progress;
    quiet_since_ns_ = now_ns;
    quiet_turns_ = 0;
    return 0;
  }
  if (now_ns - quiet_since_ns_ < card_->patience().stuck_ms * kNsPerMs ||
      quiet_turns_ < kStuckTurns)
    return 0;
  card_->reset(epoch_, fmt::format("queue {} does not move, its state is {:#x}", number_, state));
  return card_->lost() ? fail(queue, PENSTOCK_IO_ERROR, true) : begin_again(queue);
}

std::uint32_t CardQueue::fail(Queue& queue, std::uint32_t status, bool unsent) {
  std::uint32_t completions = 0;
  for (; collected_ != handed_on_ || (unsent && queue.front() != nullptr); ++completions) {
    queue.complete(status);
    collected_ = std::min(collected_ + 1, handed_on_);
  }
  quiet_since_ns_ = 0;
  return completions;
}

// After a reset of the card. If the queue does not come up the next advance() tries again, and the
// card is reset once more when it still is not there.
std::uint32_t CardQueue::begin_again(Queue& queue) {
  const std::uint32_t completions = fail(queue, PENSTOCK_IO_ERROR, false);
  if (const Status enabled = enable(); !enabled.ok()) card_->reset(epoch_, enabled.message());
  return completions;
}

}  // namespace penstock::card
