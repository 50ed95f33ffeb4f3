// One of a card's queues as the engine's side of a Queue: the ring protocol.
//
// The ring of descriptors and the ring of completions are memory of the bus. Descriptor n (from 0)
// stands at n mod depth, and the doorbell (TAIL) says how many there are. The card answers with
// completion n + 1 at n mod depth; it is there once its sequence is n + 1, and the other words of
// it were written before. A descriptor is handed on only while its completion has a place, so that
// neither ring overflows. Sequences begin anew when the queue is enabled.
//
// Every descriptor that was handed on completes exactly once, whatever the card does: from its
// completion; when the queue has stopped by an error or the card was reset, with io_error; with
// internal if the card answers what no card may.
#ifndef PENSTOCK_DRIVERS_CARD_CARD_QUEUE_H_
#define PENSTOCK_DRIVERS_CARD_CARD_QUEUE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/drivers/card/card.h"
#include "penstock/queue/queue.h"

namespace penstock::card {

// What a queue may reach: penstock addresses, and where they are on the bus.
struct CardWindow {
  penstock_address base;
  std::uint64_t bytes, bus;
  bool read, write;
};

// Used by the engine's side's thread alone.
class CardQueue final : public EngineSide {
 public:
  // Takes a queue of the card and sets its windows. no_space when all are in use, unsupported when
  // the queue has more windows than the card, or a pool that it does not see as other hosts do;
  // io_error if the card does not enable it.
  static Result<std::unique_ptr<CardQueue>> open(std::shared_ptr<Card> card, const Queue& queue);
  // With these windows in place of the queue's, onto memory that stays as long as it does.
  static Result<std::unique_ptr<CardQueue>> open(std::shared_ptr<Card> card, const Queue& queue,
                                                 std::vector<CardWindow> windows);
  // Cancels what is under way, and waits until the card is done with it (Patience::answer_ms; a
  // card that is not is reset). Then the memory is no longer reached by it.
  ~CardQueue() override;

  const Card* card() const { return card_.get(); }
  // Hands on and collects; never blocks.
  std::uint32_t advance(Queue& queue);

 private:
  CardQueue(std::shared_ptr<Card> card, std::uint32_t number);
  Status add_windows(const Queue& queue);
  Status set_up(const Queue& queue);
  Status add_window(const Pool& pool, const Window& window);
  Status enable();
  void follow_cancel(const Queue& queue);
  std::uint32_t cancel_unsent(Queue& queue);
  void hand_on(const Queue& queue);
  std::uint32_t collect(Queue& queue);
  bool take(const Queue& queue, const penstock_completion& completion,
            penstock_completion* translated) const;
  std::uint32_t watch(Queue& queue);
  std::uint32_t look(Queue& queue, std::uint64_t now_ns);
  // Completes all that the card has, or all there is, with a status.
  std::uint32_t fail(Queue& queue, std::uint32_t status, bool unsent);
  std::uint32_t begin_again(Queue& queue);
  std::uint64_t penstock_address_of(std::uint64_t bus) const;

  std::uint32_t read(std::uint32_t reg) { return card_->bus().read(base_ + reg); }
  void write(std::uint32_t reg, std::uint32_t value) { card_->bus().write(base_ + reg, value); }
  void write_wide(std::uint32_t at, std::uint64_t value);

  const std::shared_ptr<Card> card_;
  const std::uint32_t number_;
  const std::uint32_t base_;  // of its registers
  std::uint64_t epoch_ = 0;
  std::uint32_t timeout_ms_ = 0;
  std::vector<CardWindow> windows_;
  std::vector<std::byte*> memory_;  // in use, to be given back
  BusMemory ring_;
  std::uint32_t depth_ = 0;
  std::uint64_t handed_on_ = 0, collected_ = 0;  // since it was enabled
  bool cancel_told_ = false;

  // Since when nothing came, and what was seen then.
  std::uint64_t quiet_since_ns_ = 0, next_look_ns_ = 0, seen_progress_ = 0;
  std::uint32_t quiet_turns_ = 0;
};

}  // namespace penstock::card
#endif
