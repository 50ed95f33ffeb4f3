#include "penstock/sim/incoherent/scenario.h"

#include <algorithm>

namespace penstock::sim {

Run::Run(const char* scenario, const Options& options)
    : scenario_(scenario), options_(options), random_(options.seed * 2 + 1) {
  // Drawn whether or not they are overridden, so that the rest stays the same.
  static constexpr std::uint32_t kRanks[] = {2, 2, 3, 3, 3, 4, 5, 1};
  static constexpr std::uint32_t kDevices[] = {1, 1, 2, 3};
  ranks_ = kRanks[random_.below(8)];
  devices_ = kDevices[random_.below(4)];
  if (options.ranks != 0) ranks_ = options.ranks;
  if (options.devices != 0) devices_ = options.devices;
  ranks_per_host_ = random_.chance(6) ? 2 : 1;
  config_.seed = random_.next();
  config_.chaos = Chaos::of(random_);
  config_.cpus = random_.chance(8) ? 64 : 1;
  config_.one_machine = !random_.chance(3);
  if (options.machines != Machines::by_seed) set_machines(options.machines);
  config_.sites = options.sites;
  config_.trace = options.trace;
}

std::uint64_t Run::value(std::uint64_t what, std::uint64_t rank, std::uint64_t index) const {
  Random random(options_.seed * 0x9e3779b97f4a7c15u ^ what << 40 ^ rank << 32 ^ index);
  return random.next();
}

void Run::limit_ranks(std::uint32_t least, std::uint32_t most) {
  ranks_ = std::clamp(ranks_, least, most);
}

World& Run::make_world(std::uint32_t times) {
  config_.hosts = (ranks_ + ranks_per_host_ - 1) / ranks_per_host_;
  world_ = std::make_unique<World>(config_);
  PoolConfig pool;
  pool.spec = kPoolSpec;
  pool.devices = devices_;
  const bool has_small_arenas = !config_.one_machine && config_.hosts > 3;
  pool.bytes_per_device = kMinDeviceBytes * times * (has_small_arenas ? 2 : 1);
  pool.hosts = config_.one_machine ? 1 : config_.hosts;
  world_->spawn(0, [this, pool](Platform& platform) {
    const Status made = Pool::create(platform, pool);
    if (!made.ok()) fail("making the pool: " + made.to_string());
  });
  run();
  return *world_;
}

Result<std::unique_ptr<Pool>> Run::map(Platform& platform, std::uint32_t host) const {
  MapOptions options;
  options.coherence = Coherence::software;
  options.host_id = config_.one_machine ? 0 : host;
  return Pool::map(platform, kPoolSpec, options);
}

void Run::spawn_rank(std::uint32_t rank, std::function<Status(Pool&)> body) {
  const std::uint32_t host = host_of(rank);
  world_->spawn(host, [this, rank, host, body = std::move(body)](Platform& platform) {
    Status status;
    auto pool = map(platform, host);
    status = pool.ok() ? body(*pool.value()) : pool.status();
    if (!status.ok()) fail(fmt::format("rank {}: {}", rank, status.to_string()));
  });
}

void Run::run() {
  if (!world_->run()) {
    fail(fmt::format("it had not ended after {} calls into the platform", world_->steps()));
  }
}

void Run::reclaim() {
  const std::uint32_t machines = config_.one_machine ? 1 : config_.hosts;
  for (std::uint32_t host = 0; host < machines && !failed(); ++host) {
    world_->spawn(host, [this, host](Platform& platform) {
      auto pool = map(platform, host);
      if (!pool.ok()) return fail("mapping for reclaim: " + pool.status().to_string());
      const auto taken = pool.value()->reclaim();
      if (!taken.ok()) fail("reclaim: " + taken.status().to_string());
    });
  }
  run();
}

void Run::check_and_destroy(bool expect_empty) {
  if (failed()) return;
  world_->spawn(0, [this, expect_empty](Platform& platform) {
    {
      auto pool = map(platform, 0);
      if (!pool.ok()) return fail("mapping afterwards: " + pool.status().to_string());
      for (const std::string& finding : pool.value()->check()) fail("afterwards: " + finding);
      for (const RegionInfo& region : pool.value()->regions()) {
        if (expect_empty) {
          fail(fmt::format("the {} region '{}' of {} bytes was left behind",
                           region_kind_name(region.kind), region.name, region.region.bytes));
        }
      }
    }
    const Status destroyed = Pool::destroy(platform, kPoolSpec);
    if (!destroyed.ok()) fail("removing the pool: " + destroyed.to_string());
  });
  run();
}

void Run::fail(const std::string& what) {
  if (outcome_.failure.empty()) outcome_.failure = what;
}

Outcome Run::finish() {
  outcome_.steps = world_->steps();
  outcome_.trace_hash = world_->trace_hash();
  outcome_.replay =
      fmt::format("--scenario {} --seed {} --ranks {} --devices {} --machines {}", scenario_,
                  options_.seed, ranks_, devices_, config_.one_machine ? "one" : "each");
  const Outcome outcome = outcome_;
  world_.reset();  // the ghosts end, and may still find fault; nobody listens
  return outcome;
}

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all = collective_scenarios();
  for (const auto& more :
       {memory_scenarios(), life_scenarios(), regroup_scenarios(), window_scenarios()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace penstock::sim
