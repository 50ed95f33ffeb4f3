// One card: what its queues share.
#ifndef PENSTOCK_DRIVERS_CARD_CARD_H_
#define PENSTOCK_DRIVERS_CARD_CARD_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "penstock/drivers/card/bus.h"
#include "penstock/drivers/card/identity.h"
#include "penstock/memory/pool.h"

namespace penstock::card {

// How long the driver waits for what takes a card microseconds, by this host's clock.
struct Patience {
  // A queue whose work is under way and does not move, and that waits for no fence: the card is
  // reset then.
  std::uint64_t stuck_ms = 5000;
  // The end of a reset, and that a cancelled queue falls idle.
  std::uint64_t answer_ms = 5000;
};

// Thread-safe.
class Card {
 public:
  // Reads the identity, resets the card and enables it. The errors of read_identity, and io_error
  // if the reset does not end.
  static Result<std::shared_ptr<Card>> open(std::unique_ptr<Bus> bus,
                                            const Patience& patience = {});
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  Bus& bus() { return *bus_; }
  const Identity& identity() const { return identity_; }
  const Patience& patience() const { return patience_; }

  // A hardware queue that is disabled; no_space when all are taken.
  Result<std::uint32_t> take_queue();
  void give_queue(std::uint32_t queue);

  // The bus address of a pool's device; it stays attached until each use was given back.
  Result<std::uint64_t> use_memory(std::byte* data, std::uint64_t bytes);
  void give_memory(std::byte* data);

  // Raised by every reset: a queue of an earlier epoch is disabled, and what it had is gone.
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  // Nothing answers any more, for good.
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Resets the card if it still is in this epoch. If that does not help the card is lost.
  void reset(std::uint64_t epoch, const std::string& why);

  // What changes while the card works on operands; see Patience.
  std::uint64_t progress();
  // Cycles in which something was under way, since the reset.
  std::uint64_t busy_cycles();
  // Logs the error registers if they hold something, and clears their latch.
  void report_error();

 private:
  Card(std::unique_ptr<Bus> bus, Identity identity, const Patience& patience);
  Status start();

  struct Use {
    std::uint64_t bus = 0, bytes = 0;
    std::uint32_t users = 0;
  };

  const std::unique_ptr<Bus> bus_;
  const Identity identity_;
  const Patience patience_;
  std::mutex mutex_;
  std::vector<bool> taken_;  // queues
  std::map<std::byte*, Use> memory_;
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<bool> lost_{false};
};

}  // namespace penstock::card
#endif
