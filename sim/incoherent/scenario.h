// Scenarios: what simulated processes do, and what must come out. A scenario follows from its name,
// a seed and the few numbers that a replay line gives; nothing else.
#ifndef PENSTOCK_SIM_INCOHERENT_SCENARIO_H_
#define PENSTOCK_SIM_INCOHERENT_SCENARIO_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/comm/comm.h"
#include "penstock/memory/pool.h"
#include "penstock/sim/incoherent/world.h"

namespace penstock::sim {

// Whether the hosts are one machine, whose locks and pids they share, or a machine each.
enum class Machines : std::uint8_t { by_seed, one, each };

struct Options {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 0;    // 0: by the seed
  std::uint32_t devices = 0;  // 0: by the seed
  Machines machines = Machines::by_seed;
  SiteWatch* sites = nullptr;
  std::function<void(const std::string&)> trace;
};

struct Outcome {
  std::string failure;  // "" if all was as it must be
  std::string replay;   // the options that bring it back: "--scenario x --seed 1 ..."
  std::uint64_t steps = 0;
  std::uint64_t trace_hash = 0;
};

// One run of a scenario: its chance, its world, and the first thing that went wrong.
class Run {
 public:
  Run(const char* scenario, const Options& options);

  const Options& options() const { return options_; }
  Random& random() { return random_; }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t devices() const { return devices_; }
  std::uint64_t seed() const { return options_.seed; }
  // A value that depends on all of these, the same on every rank that asks.
  std::uint64_t value(std::uint64_t what, std::uint64_t rank, std::uint64_t index) const;

  void limit_ranks(std::uint32_t least, std::uint32_t most);
  void set_machines(Machines machines) { config_.one_machine = machines == Machines::one; }
  // Before make_world: how the world differs from what the seed says.
  WorldConfig& config() { return config_; }
  // A world with a host per `ranks_per_host` ranks and a fresh pool in it, of devices that are
  // `times` as large as a comm needs in every machine's arena.
  World& make_world(std::uint32_t times = 1);
  World& world() { return *world_; }
  std::uint32_t ranks_per_host() const { return ranks_per_host_; }
  std::uint32_t host_of(std::uint32_t rank) const { return rank / ranks_per_host_; }
  // Each rank's process maps the pool and runs the body; errors of either are failures.
  void spawn_rank(std::uint32_t rank, std::function<Status(Pool&)> body);
  Result<std::unique_ptr<Pool>> map(Platform& platform, std::uint32_t host) const;
  // Runs the world; a failure if it does not come to an end.
  void run();
  // Every machine takes back what its dead, or those who left before others, did not free.
  void reclaim();
  // What everybody left must be sound, nothing, and removable.
  void check_and_destroy(bool expect_empty = true);

  void fail(const std::string& what);
  bool failed() const { return !outcome_.failure.empty(); }
  Outcome finish();

 private:
  const char* scenario_;
  Options options_;
  Random random_;
  std::uint32_t ranks_;
  std::uint32_t devices_;
  std::uint32_t ranks_per_host_ = 1;
  WorldConfig config_;
  std::unique_ptr<World> world_;
  Outcome outcome_;
};

inline constexpr const char* kPoolSpec = "/dev/pool";

struct Scenario {
  const char* name;
  const char* summary;
  Outcome (*run)(const Options& options);
};
// All of them, in the order in which --list shows them.
std::vector<Scenario> scenarios();

// By file.
std::vector<Scenario> collective_scenarios();
std::vector<Scenario> memory_scenarios();
std::vector<Scenario> life_scenarios();
std::vector<Scenario> regroup_scenarios();
std::vector<Scenario> window_scenarios();

}  // namespace penstock::sim
#endif
