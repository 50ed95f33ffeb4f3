#include "penstock/comm/world.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "penstock/base/env.h"
#include "penstock/base/log.h"
#include "penstock/base/trace.h"
#include "penstock/comm/tuning_file.h"

namespace penstock {
namespace {

constexpr char kMarkName[] = "world";
constexpr std::uint32_t kMaxTimeoutMs = 1u << 30;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 56;
constexpr std::uint64_t kRetryNs = 5'000'000;
constexpr std::size_t kMaxCommName = 31;

// What the names of this user's temporary pools begin with, folder included.
std::string temporary_prefix() {
  Launch launch;
  launch.job = "x";
  std::string spec = default_pool_spec(launch);
  spec.pop_back();
  return spec;
}

Result<MapOptions> map_options() {
  MapOptions options;
  const auto coherence = parse_coherence(env::text(env::Id::coherence));
  if (!coherence.ok()) return coherence.status().with_context("PENSTOCK_COHERENCE");
  options.coherence = coherence.value();
  PENSTOCK_ASSIGN(const std::uint64_t host, env::number(env::Id::host_id, 0, 15));
  options.host_id = static_cast<std::uint32_t>(host);
  return options;
}

Status mark(Pool& pool) {
  RegionRequest request;
  request.name = kMarkName;
  request.bytes = 1;
  return pool.allocate(request).status();
}

// The process that a name made up by TemporaryPool::make tells of: pid and pid namespace.
bool parse_maker(const std::string& name, ProcessIdentity* maker) {
  std::uint64_t numbers[3];
  const char* at = name.data();
  const char* const end = name.data() + name.size();
  for (int i = 0; i < 3; ++i) {
    const auto [stop, failure] = std::from_chars(at, end, numbers[i], i == 2 ? 16 : 10);
    if (failure != std::errc() || (i < 2 && (stop == end || *stop != '-'))) return false;
    at = stop + 1;
  }
  maker->pid = static_cast<std::uint32_t>(numbers[0]);
  maker->pid_namespace = numbers[1];
  return true;
}

// A pool whose maker died while making it has no superblock yet, and so no mark: its name says who
// made it.
bool abandoned_while_made(Platform& platform, const std::string& name) {
  ProcessIdentity maker;
  if (!parse_maker(name, &maker)) return false;
  const ProcessIdentity self = platform.self();
  if (maker.pid_namespace != self.pid_namespace) return false;
  std::error_code failure;
  return !std::filesystem::exists("/proc/" + std::to_string(maker.pid), failure) && !failure;
}

// FNV-1a; tells long job names apart once they are cut.
std::uint32_t short_hash(const std::string& text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::string comm_name(const Launch& launch, Platform& platform) {
  if (env::is_set(env::Id::comm)) return env::text(env::Id::comm);
  if (launch.job.empty()) {
    return fmt::format("solo-{}-{:08x}", platform.self().pid,
                       static_cast<std::uint32_t>(platform.random()));
  }
  if (launch.job.size() <= kMaxCommName) return launch.job;
  return fmt::format("{}-{:08x}", launch.job.substr(0, kMaxCommName - 9), short_hash(launch.job));
}

}  // namespace

Result<TemporaryPool> TemporaryPool::make(Platform& platform, const std::string& spec,
                                          std::uint32_t devices, std::uint64_t bytes_per_device) {
  PENSTOCK_ASSIGN(const MapOptions options, map_options());
  PoolConfig config;
  config.spec = spec;
  config.devices = devices;
  config.bytes_per_device = bytes_per_device;
  config.hosts = options.host_id + 1;
  if (spec.empty()) {
    const ProcessIdentity self = platform.self();
    config.spec = fmt::format("{}{}-{}-{:016x}", temporary_prefix(), self.pid, self.pid_namespace,
                              platform.random());
  }
  PENSTOCK_TRY(Pool::create(platform, config));
  auto pool = Pool::map(platform, config.spec, options);
  const Status marked = pool.ok() ? mark(**pool) : pool.status();
  if (!marked.ok()) {
    if (pool.ok()) std::move(pool).value().reset();
    (void)Pool::destroy(platform, config.spec, true);
    return marked;
  }
  return TemporaryPool(std::move(pool).value());
}

TemporaryPool::~TemporaryPool() {
  if (!pool_) return;
  Platform& platform = pool_->platform();
  const std::string spec = pool_->spec();
  const bool named = pool_->still_named();
  pool_.reset();
  const Status removed = named ? Pool::destroy(platform, spec, true) : Status();
  if (!removed.ok() && removed.code() != Code::not_found) {
    log::warn("the temporary pool stays behind: {}", removed.message());
  }
}

Mark find_mark(Pool& pool) {
  for (const RegionInfo& region : pool.regions()) {
    if (region.kind != RegionKind::user || region.name != kMarkName) continue;
    return region.owner == Liveness::dead ? Mark::dead : Mark::alive;
  }
  return Mark::none;
}

std::vector<std::string> list_pool_specs(bool all) {
  const std::string prefix = temporary_prefix();
  const std::filesystem::path folder = std::filesystem::path(prefix).parent_path();
  std::set<std::string> specs;
  std::error_code failure;
  for (auto it = std::filesystem::directory_iterator(folder, failure);
       !failure && it != std::filesystem::directory_iterator(); it.increment(failure)) {
    std::string path = it->path().string();
    if ((!all && path.rfind(prefix, 0) != 0) || !it->is_regular_file(failure)) continue;
    // PATH.3 is the fourth memory device of PATH, unless there is no PATH.0 beside it.
    const std::size_t dot = path.rfind('.');
    if (dot != std::string::npos && dot + 1 < path.size() &&
        path.find_first_not_of("0123456789", dot + 1) == std::string::npos &&
        std::filesystem::exists(path.substr(0, dot) + ".0", failure)) {
      path.resize(dot);
    }
    specs.insert(path);
  }
  return {specs.begin(), specs.end()};
}

std::uint32_t sweep_temporary_pools(Platform& platform) {
  const std::size_t prefix_length = temporary_prefix().size();
  std::uint32_t removed = 0;
  for (const std::string& spec : list_pool_specs()) {
    bool abandoned = false;
    bool force = false;
    {
      auto pool = Pool::map(platform, spec);
      if (pool.ok()) {
        abandoned = find_mark(**pool) == Mark::dead;
      }
      // Without a mark the maker may have died before it came to it.
      if (!pool.ok() || find_mark(**pool) == Mark::none) {
        abandoned = abandoned_while_made(platform, spec.substr(prefix_length));
        force = abandoned && !pool.ok();
      }
    }
    if (!abandoned) continue;
    const Status status = Pool::destroy(platform, spec, force);
    if (status.ok()) {
      ++removed;
      log::info("removed the temporary pool {}, whose maker is dead", spec);
    } else {
      log::debug("left {} alone: {}", spec, status.message());
    }
  }
  return removed;
}

// Rank 0's part. A pool of the same name is either of a job that crashed, and then removed and made
// again, or of one that still runs, and then waited for. Another process may take the new pool for
// an abandoned one and remove it before it is mapped here: then it is made again.
Result<std::unique_ptr<Pool>> World::make_shared(Platform& platform, const std::string& spec,
                                                 std::uint64_t deadline_ns) {
  PENSTOCK_ASSIGN(const std::uint64_t devices, env::number(env::Id::pool_devices, 1, 16));
  PENSTOCK_ASSIGN(const std::uint64_t bytes,
                  env::bytes(env::Id::pool_bytes, kMinDeviceBytes, kMaxBytes));
  while (true) {
    auto made = TemporaryPool::make(platform, spec, static_cast<std::uint32_t>(devices), bytes);
    if (made.ok() && made->pool().still_named()) return made->release();
    Status status =
        made.ok() ? error(Code::busy, "{}: removed while it was made", spec) : made.status();
    if (status.code() == Code::already_exists) {
      status = Pool::destroy(platform, spec, false);
      if (status.ok() || status.code() == Code::not_found) continue;
      // Not a pool of this version, but under a name that is ours.
      if (status.code() != Code::busy) {
        PENSTOCK_TRY(Pool::destroy(platform, spec, true));
        continue;
      }
    }
    const bool gone = status.code() == Code::busy || status.code() == Code::not_found;
    if (!gone || platform.now_ns() >= deadline_ns) {
      return status.with_context("making the pool of this job");
    }
    platform.sleep_ns(kRetryNs);
  }
}

// The other ranks' part: until the pool is there and rank 0 of this job made it.
Result<std::unique_ptr<Pool>> World::wait_for_shared(Platform& platform, const std::string& spec,
                                                     std::uint64_t deadline_ns) {
  PENSTOCK_ASSIGN(const MapOptions options, map_options());
  while (true) {
    auto pool = Pool::map(platform, spec, options);
    if (pool.ok() && find_mark(**pool) == Mark::alive && (*pool)->still_named()) return pool;
    const std::string seen =
        pool.ok() ? spec + " belongs to a job that has ended" : pool.status().message();
    // Mapped, it would keep rank 0 from replacing it.
    if (pool.ok()) std::move(pool).value().reset();
    if (platform.now_ns() >= deadline_ns) {
      return error(Code::deadline_exceeded,
                   "rank 0 made no pool in time ({}); start all ranks together, raise "
                   "PENSTOCK_TIMEOUT_MS, or name a pool with PENSTOCK_POOL",
                   seen);
    }
    platform.sleep_ns(kRetryNs + platform.random() % kRetryNs);
  }
}

Result<World> World::open(Platform& platform) {
  PENSTOCK_ASSIGN(Launch launch, detect_launch());
  PENSTOCK_TRY(trace::start_from_environment(launch.rank, launch.size));
  PENSTOCK_ASSIGN(const std::uint64_t timeout_ms,
                  env::number(env::Id::timeout_ms, 1, kMaxTimeoutMs));
  if (env::is_set(env::Id::pool)) {
    PENSTOCK_ASSIGN(const MapOptions options, map_options());
    const std::string spec = env::text(env::Id::pool);
    auto pool = Pool::map(platform, spec, options);
    if (!pool.ok()) return pool.status().with_context("PENSTOCK_POOL");
    return World(std::move(launch), std::move(pool).value(), false);
  }
  const std::uint64_t deadline_ns = platform.now_ns() + timeout_ms * 1'000'000;
  if (launch.rank > 0) {
    PENSTOCK_ASSIGN(auto pool, wait_for_shared(platform, default_pool_spec(launch), deadline_ns));
    return World(std::move(launch), std::move(pool), true);
  }
  sweep_temporary_pools(platform);
  const std::string spec = launch.launcher == "none" ? "" : default_pool_spec(launch);
  if (spec.empty()) {
    PENSTOCK_ASSIGN(const std::uint64_t devices, env::number(env::Id::pool_devices, 1, 16));
    PENSTOCK_ASSIGN(const std::uint64_t bytes,
                    env::bytes(env::Id::pool_bytes, kMinDeviceBytes, kMaxBytes));
    PENSTOCK_ASSIGN(
        auto made, TemporaryPool::make(platform, spec, static_cast<std::uint32_t>(devices), bytes));
    return World(std::move(launch), made.release(), true);
  }
  PENSTOCK_ASSIGN(auto pool, make_shared(platform, spec, deadline_ns));
  return World(std::move(launch), std::move(pool), true);
}

World::~World() {
  if (!pool_ || !temporary_) return;
  Platform& platform = pool_->platform();
  const std::string spec = pool_->spec();
  const bool named = pool_->still_named();
  pool_.reset();
  // busy: another rank is still there, and does it when it leaves.
  if (named) (void)Pool::destroy(platform, spec, false);
}

Result<CommConfig> World::comm_config() const {
  CommConfig config;
  config.name = comm_name(launch_, pool_->platform());
  config.rank = launch_.rank;
  config.size = launch_.size;
  config.engine = env::text(env::Id::engine);
  PENSTOCK_ASSIGN(const std::uint64_t group, env::number(env::Id::group, 0, kMaxRanks));
  config.group = static_cast<std::uint32_t>(group);
  PENSTOCK_ASSIGN(const std::uint64_t timeout_ms,
                  env::number(env::Id::timeout_ms, 1, kMaxTimeoutMs));
  config.timeout_ms = static_cast<std::uint32_t>(timeout_ms);
  PENSTOCK_ASSIGN(config.rank_bytes,
                  env::bytes(env::Id::block_bytes, PENSTOCK_CACHE_LINE, std::uint64_t{1} << 40));
  const std::string wait = env::text(env::Id::wait);
  if (wait == "spin") {
    config.wait = CommConfig::Wait::spin;
  } else if (wait == "yield") {
    config.wait = CommConfig::Wait::yield;
  } else if (wait != "auto") {
    return error(Code::invalid_argument,
                 "PENSTOCK_WAIT={} is not a way of waiting: use auto, "
                 "spin or yield",
                 wait);
  }
  if (config.name.size() > kMaxCommName) {
    return error(Code::invalid_argument, "PENSTOCK_COMM={} has {} bytes: it must have 1..{}",
                 config.name, config.name.size(), kMaxCommName);
  }
  PENSTOCK_ASSIGN(const TuningInForce force,
                  tuning_in_force(pool_->platform(), pool_->coherence(), config.size));
  config.tuning = force.tuning;
  config.local = force.local;
  return config;
}

}  // namespace penstock
