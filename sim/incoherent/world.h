// A simulated world: machines whose caches know nothing of each other, processes on them, memory
// devices that they share, one clock, and a seed from which everything follows.
//
// Processes are fibers. They take turns at calls into their platform only, so that between two such
// calls a process runs alone; what its cache does meanwhile happens at such calls, too.
#ifndef PENSTOCK_SIM_INCOHERENT_WORLD_H_
#define PENSTOCK_SIM_INCOHERENT_WORLD_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/platform.h"
#include "penstock/sim/incoherent/cache.h"
#include "penstock/sim/incoherent/fiber.h"
#include "penstock/sim/incoherent/file_system.h"
#include "penstock/sim/incoherent/random.h"
#include "penstock/sim/incoherent/site.h"

namespace penstock::sim {

class SimPlatform;

// How often chance acts, each as "once in so many calls" (0: never).
struct Chaos {
  std::uint32_t switch_in = 8;  // another process gets the turn, at any call
  std::uint32_t idle_in = 1;    // and at pause and yield
  std::uint32_t land_in = 8;    // a write-back or invalidation on its way takes effect
  std::uint32_t evict_in = 64;  // a cache drops a line
  std::uint32_t prompt_in = 2;  // a write-back or invalidation takes effect at once
  std::uint32_t tick_ns = 400;  // a call takes 1 to this many nanoseconds
  // One of very different mixtures, by chance.
  static Chaos of(Random& random);
};

// How a process ends before its time, or stands still.
enum class HaltKind : std::uint8_t {
  none,
  // The process is gone. What it had stored is there by the time that others can notice its end:
  // only processes of one machine can, and a real machine's caches are coherent.
  kill,
  power_loss,  // its machine is gone, and each dirty line is lost or not, by chance
  stop,        // it gets no turn for a while
};
struct Halt {
  HaltKind kind = HaltKind::none;
  std::uint32_t process = 0;
  std::uint64_t step = 0;     // at this call of the process, counted from 1
  std::uint64_t stop_ns = 0;  // how long a stop lasts
};

struct WorldConfig {
  std::uint64_t seed = 0;
  std::uint32_t hosts = 1;   // caches
  bool one_machine = false;  // the hosts share boot id, pids and locks: only their caches differ
  std::uint32_t cpus = 1;    // that each process may run on
  Chaos chaos;
  Halt halt;
  std::uint64_t max_steps = 6'000'000;            // then run() gives up
  SiteWatch* sites = nullptr;                     // outlives the world
  std::function<void(const std::string&)> trace;  // one line per event; may be empty
};

enum class Event : std::uint8_t {
  now,
  random,
  pause,
  yield,
  sleep,
  open,
  file,
  lock,
  unlock,
  map,
  unmap,
  identity,
  write_back,
  invalidate,
  store_fence,
  full_fence,
  landed,
  evicted,
  halted,
  resumed,
  ended,
};
const char* event_name(Event event);

// A line on its way: asked for, not yet ordered by a fence.
struct PendingLine {
  CachedLine at;
  bool invalidates = false;  // else it is written back
};

struct Host {
  Cache cache;
  std::uint32_t machine = 0;
  std::array<std::uint8_t, 16> boot_id{};
};

struct Process {
  enum class State : std::uint8_t { ready, asleep, ended, dead };
  std::uint32_t index = 0;
  std::uint32_t host = 0;
  ProcessIdentity identity;
  std::unique_ptr<SimPlatform> platform;
  std::unique_ptr<Fiber> fiber;
  State state = State::ready;
  std::uint64_t wake_ns = 0;
  std::uint64_t steps = 0;
  std::vector<PendingLine> pending;
  std::vector<std::pair<std::shared_ptr<Inode>, std::uint64_t>> descriptions;  // open files
  // A dead process runs to the end of its function when the world ends, so that nothing leaks, and
  // touches nothing of the world any more: its clock races, so that every wait is over soon.
  bool is_ghost = false;
  std::uint64_t ghost_ns = 0;
};

class World {
 public:
  explicit World(const WorldConfig& config);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // A process that will run `body` on this host. Its number.
  std::uint32_t spawn(std::uint32_t host, std::function<void(Platform&)> body);
  // Runs until every process has ended or is dead. False: it took more than max_steps. Callable
  // again after further spawns.
  bool run();

  bool is_dead(std::uint32_t process) const {
    return processes_[process]->state == Process::State::dead;
  }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t steps_of(std::uint32_t process) const { return processes_[process]->steps; }
  std::uint64_t now_ns() const { return clock_ns_; }
  // Of all events: equal for two runs that went the same way.
  std::uint64_t trace_hash() const { return hash_; }
  bool has_halted() const { return has_halted_; }
  // Makes a machine that lost power usable again, under another boot id.
  void boot(std::uint32_t host);

 private:
  friend class SimPlatform;
  friend class SimFile;

  // A call of this process into its platform: time passes, chance acts, others may get a turn.
  // False for a ghost, whose call does nothing.
  bool step(Process& process, Event event, std::uint64_t device = 0, std::uint64_t offset = 0,
            std::uint64_t bytes = 0);
  void record(const Process& process, Event event, std::uint64_t device, std::uint64_t offset,
              std::uint64_t bytes);
  void act_by_chance(Process& process);
  void land(const PendingLine& pending);
  // Everything that this process asked for takes effect; invalidations only with `loads`.
  void settle(Process& process, bool loads);
  void write_back(Process& process, CachedDevice& device, std::uint64_t offset,
                  std::uint64_t bytes);
  void invalidate(Process& process, CachedDevice& device, std::uint64_t offset,
                  std::uint64_t bytes);
  void sleep_until(Process& process, std::uint64_t wake_ns);
  void give_turn(Process& process);
  Process* next_process();
  void halt(Process& process);
  void die(Process& process);
  void lose_power(Host& host);
  void end_ghosts();
  Liveness liveness(const Process& asking, const ProcessIdentity& process) const;

  WorldConfig config_;
  Random chance_;
  Random numbers_;  // what Platform::random() gives
  FileSystem files_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Process*> candidates_;
  std::uint64_t clock_ns_ = 1'000'000;
  std::uint64_t steps_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325;
  bool has_halted_ = false;
};

}  // namespace penstock::sim
#endif
