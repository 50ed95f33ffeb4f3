// How a card is reached. The ring protocol (card_queue.h) knows nothing but this, so that a
// simulated card sees every access, and one that is plugged in sees the same ones.
//
// A bus registers by name, in the library that is loaded for the engine `card`:
//   register_bus({"verilator", 10, probe, make});
// and is asked for by it: make_engine("card:verilator;seed=3") gives "seed=3" to `make`.
#ifndef PENSTOCK_DRIVERS_CARD_BUS_H_
#define PENSTOCK_DRIVERS_CARD_BUS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/status.h"

namespace penstock::card {

// What a read gives that nothing answers: a link that is down, a register that does not exist.
inline constexpr std::uint32_t kNoAnswer = 0xffffffffu;

// Memory of the bus's own that the card reaches, for rings. Zeroed, 4 KiB aligned on both sides,
// coherent: what one side wrote the other sees, 8 aligned bytes at least in one piece, in the order
// in which they were written.
struct BusMemory {
  std::byte* data = nullptr;
  std::uint64_t bus = 0;
  std::uint64_t bytes = 0;
};

// One card, of which it is the only owner. Thread-safe; registers keep the order of one thread's
// accesses, and a write is done before a later read answers.
class Bus {
 public:
  virtual ~Bus() = default;
  // One line: what is there, for people.
  virtual std::string description() const = 0;

  // 32-bit registers by their byte offset.
  virtual std::uint32_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint32_t value) = 0;

  // Lets the card reach the caller's memory, 4 KiB aligned like the bus address that it returns.
  // An address is not handed out again for other memory while the bus lives. The memory stays until
  // detach(), after which the card gets bus errors there, whatever it has under way.
  virtual Result<std::uint64_t> attach(std::byte* memory, std::uint64_t bytes) = 0;
  virtual void detach(std::uint64_t bus) = 0;
  virtual Result<BusMemory> allocate(std::uint64_t bytes) = 0;
  virtual void release(const BusMemory& memory) = 0;
  // True if the card works on copies: attach() is not for it then, and staged_engine.h does with
  // the three below.
  virtual bool stages() const { return false; }
  // Memory of the card's own with an image of it in this process, 4 KiB aligned on both sides, for
  // one queue; its owner gives it to release(). Neither side sees what the other wrote until it was
  // moved: [at, at + bytes) of it, which to_card() and from_card() have done when they return.
  virtual Result<BusMemory> allocate_staging();
  virtual Status to_card(const BusMemory& memory, std::uint64_t at, std::uint64_t bytes);
  virtual Status from_card(const BusMemory& memory, std::uint64_t at, std::uint64_t bytes);
  // True if the card does not see other hosts' memory as a device does, but through this host's
  // caches: then it is no use on a pool that is not coherent between hosts.
  virtual bool behind_caches() const { return false; }

  // How many of the card's cycles are a millisecond of its owner: deadlines are kept with it, and
  // never come early.
  virtual std::uint32_t clock_khz() const = 0;
  // True if idle() waits for the card's interrupt, which then has to come for completions.
  virtual bool interrupts() const { return false; }
  // Nothing to do but wait: lets a simulated card's time pass, is a pause for a real one. Returns
  // within about a millisecond.
  virtual void idle() = 0;
};

struct BusFactory {
  std::string name;               // letters, digits, '_' and '-'
  int preference = 0;             // the available one with the highest is taken where none is named
  std::function<Status()> probe;  // ok, or why not here; cheap
  std::function<Result<std::unique_ptr<Bus>>(const std::string& options)> make;
  bool simulated = false;  // what is behind it is no hardware
};
struct BusInfo {
  std::string name;
  Status available;
  bool simulated = false;
};

// already_exists if the name is taken, invalid_argument if the factory is incomplete. Thread-safe,
// as are the next two.
Status register_bus(BusFactory factory);
// By preference, highest first.
std::vector<BusInfo> list_buses();
// "NAME", "NAME;OPTIONS" or "" for the best available. not_found lists the names there are,
// unsupported says why it cannot run here.
Result<std::unique_ptr<Bus>> make_bus(const std::string& text);

// "key=value;key=value;flag" of a bus's options, taken apart. What is asked for by no get() is an
// error of finish(), so that a misspelt option is not ignored.
class BusOptions {
 public:
  static Result<BusOptions> parse(const std::string& bus, const std::string& text);
  std::string text(const std::string& key, const std::string& otherwise);
  // invalid_argument with the key, the value and the range, kept for finish().
  std::uint64_t number(const std::string& key, std::uint64_t otherwise, std::uint64_t min,
                       std::uint64_t max);
  Status finish() const;

 private:
  std::string bus_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> known_;
  Status first_;
};

}  // namespace penstock::card
#endif
