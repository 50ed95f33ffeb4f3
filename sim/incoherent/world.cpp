#include "penstock/sim/incoherent/world.h"

#include <algorithm>

#include "penstock/sim/incoherent/sim_platform.h"

namespace penstock::sim {

Chaos Chaos::of(Random& random) {
  const auto one_of = [&random](std::initializer_list<std::uint32_t> values) {
    return values.begin()[random.below(static_cast<std::uint32_t>(values.size()))];
  };
  Chaos chaos;
  chaos.switch_in = one_of({2, 6, 20, 100});
  chaos.idle_in = one_of({1, 1, 2, 8});
  chaos.land_in = one_of({2, 8, 40});
  chaos.evict_in = one_of({0, 200, 40, 8});
  chaos.prompt_in = one_of({1, 2, 8, 50});
  chaos.tick_ns = one_of({100, 500, 2000});
  return chaos;
}

const char* event_name(Event event) {
  static const char* const names[] = {
      "now",         "random",     "pause",  "yield",   "sleep",    "open",       "file",
      "lock",        "unlock",     "map",    "unmap",   "identity", "write_back", "invalidate",
      "store_fence", "full_fence", "landed", "evicted", "halted",   "resumed",    "ended"};
  return names[static_cast<int>(event)];
}

World::World(const WorldConfig& config)
    : config_(config), chance_(config.seed), numbers_(~config.seed) {
  for (std::uint32_t host = 0; host < config_.hosts; ++host) {
    hosts_.push_back(std::make_unique<Host>());
    hosts_.back()->machine = config_.one_machine ? 0 : host;
    boot(host);
  }
}

World::~World() {
  end_ghosts();
  processes_.clear();
}

void World::boot(std::uint32_t host) {
  // Hosts of one machine have its boot id.
  if (config_.one_machine && host != 0) {
    hosts_[host]->boot_id = hosts_[0]->boot_id;
    return;
  }
  for (std::uint8_t& byte : hosts_[host]->boot_id) {
    byte = static_cast<std::uint8_t>(numbers_.next());
  }
}

std::uint32_t World::spawn(std::uint32_t host, std::function<void(Platform&)> body) {
  PENSTOCK_CHECK(host < hosts_.size(), "a process on host {} of {}", host, hosts_.size());
  auto process = std::make_unique<Process>();
  Process* raw = process.get();
  raw->index = static_cast<std::uint32_t>(processes_.size());
  raw->host = host;
  raw->identity.boot_id = hosts_[host]->boot_id;
  raw->identity.start_time = 1000 + raw->index;
  raw->identity.pid_namespace = 1 + hosts_[host]->machine;
  raw->identity.pid = 100 + raw->index;
  raw->platform = std::make_unique<SimPlatform>(*this, *raw);
  raw->fiber = std::make_unique<Fiber>([this, raw, body = std::move(body)] {
    body(*raw->platform);
    if (raw->is_ghost) return;
    settle(*raw, true);
    raw->state = Process::State::ended;
    record(*raw, Event::ended, 0, 0, 0);
  });
  processes_.push_back(std::move(process));
  return raw->index;
}

bool World::run() {
  while (Process* process = next_process()) {
    if (steps_ >= config_.max_steps) {
      for (const auto& each : processes_) {
        if (each->state != Process::State::ended) each->state = Process::State::dead;
      }
      return false;
    }
    process->fiber->resume();
  }
  return true;
}

// Anybody who is ready or whose sleep is over; if all sleep, time leaps to the first who wakes.
Process* World::next_process() {
  candidates_.clear();
  Process* first_to_wake = nullptr;
  for (const auto& process : processes_) {
    if (process->state == Process::State::ready) candidates_.push_back(process.get());
    if (process->state != Process::State::asleep) continue;
    if (process->wake_ns <= clock_ns_) candidates_.push_back(process.get());
    if (first_to_wake == nullptr || process->wake_ns < first_to_wake->wake_ns) {
      first_to_wake = process.get();
    }
  }
  if (candidates_.empty()) {
    if (first_to_wake == nullptr) return nullptr;
    clock_ns_ = first_to_wake->wake_ns;
    candidates_.push_back(first_to_wake);
  }
  Process* chosen =
      candidates_.size() == 1
          ? candidates_[0]
          : candidates_[chance_.below(static_cast<std::uint32_t>(candidates_.size()))];
  chosen->state = Process::State::ready;
  return chosen;
}

void World::record(const Process& process, Event event, std::uint64_t device, std::uint64_t offset,
                   std::uint64_t bytes) {
  for (const std::uint64_t word :
       {std::uint64_t{process.index} << 8 | static_cast<std::uint64_t>(event), device, offset,
        bytes, clock_ns_}) {
    hash_ = (hash_ ^ word) * 0x100000001b3;
    hash_ ^= hash_ >> 29;
  }
  if (!config_.trace) return;
  config_.trace(fmt::format("{:>10} {:>9} p{} h{} {:<11} {}:{:#x}+{}", steps_, clock_ns_,
                            process.index, process.host, event_name(event), device, offset, bytes));
}

bool World::step(Process& process, Event event, std::uint64_t device, std::uint64_t offset,
                 std::uint64_t bytes) {
  if (process.is_ghost) {
    process.ghost_ns += 100'000'000;
    return false;
  }
  ++steps_;
  ++process.steps;
  clock_ns_ += 1 + chance_.below(config_.chaos.tick_ns);
  record(process, event, device, offset, bytes);
  if (config_.halt.kind != HaltKind::none && config_.halt.process == process.index &&
      config_.halt.step == process.steps) {
    halt(process);
    if (process.is_ghost) return false;
  }
  act_by_chance(process);
  const bool idle = event == Event::pause || event == Event::yield;
  if (chance_.chance(idle ? config_.chaos.idle_in : config_.chaos.switch_in)) give_turn(process);
  return !process.is_ghost;
}

void World::give_turn(Process& process) { process.fiber->pause(); }

void World::sleep_until(Process& process, std::uint64_t wake_ns) {
  process.state = Process::State::asleep;
  process.wake_ns = wake_ns;
  process.fiber->pause();
}

void World::act_by_chance(Process& process) {
  if (!process.pending.empty() && chance_.chance(config_.chaos.land_in)) {
    const std::size_t at = chance_.below(static_cast<std::uint32_t>(process.pending.size()));
    const PendingLine line = process.pending[at];
    process.pending[at] = process.pending.back();
    process.pending.pop_back();
    record(process, Event::landed, line.at.device->memory().number(), line.at.line * kLine, kLine);
    land(line);
  }
  if (chance_.chance(config_.chaos.evict_in)) {
    const std::uint32_t host = chance_.below(static_cast<std::uint32_t>(hosts_.size()));
    const CachedLine at = hosts_[host]->cache.pick(chance_);
    if (at.device == nullptr) return;
    record(process, Event::evicted, at.device->memory().number(), at.line * kLine, host);
    at.device->drop(at.line);
  }
}

void World::land(const PendingLine& pending) {
  if (pending.invalidates) {
    pending.at.device->drop(pending.at.line);
  } else {
    pending.at.device->write(pending.at.line);
  }
}

void World::settle(Process& process, bool loads) {
  std::vector<PendingLine> kept;
  for (const PendingLine& pending : process.pending) {
    if (!pending.invalidates || loads) {
      land(pending);
    } else {
      // Its write-back is ordered by any fence, later loads only by a full one.
      if (pending.at.device->is_dirty(pending.at.line)) pending.at.device->write(pending.at.line);
      kept.push_back(pending);
    }
  }
  process.pending = std::move(kept);
}

void World::write_back(Process& process, CachedDevice& device, std::uint64_t offset,
                       std::uint64_t bytes) {
  const std::uint64_t first = offset / kLine;
  const std::uint64_t end = (offset + bytes + kLine - 1) / kLine;
  for (std::uint64_t line = first; line < end; ++line) {
    const bool dirty = device.is_dirty(line);
    if (!dirty && !device.is_stale(line)) continue;
    // One that looks clean was stored to without a change; see cache.h.
    if (!dirty || chance_.chance(config_.chaos.prompt_in)) {
      device.write(line);
    } else {
      process.pending.push_back({{&device, line}, false});
    }
  }
  hosts_[process.host]->cache.note(&device, first, end - first);
}

void World::invalidate(Process& process, CachedDevice& device, std::uint64_t offset,
                       std::uint64_t bytes) {
  const std::uint64_t first = offset / kLine;
  const std::uint64_t end = (offset + bytes + kLine - 1) / kLine;
  const bool prompt = chance_.chance(config_.chaos.prompt_in);
  for (std::uint64_t line = first; line < end; ++line) {
    if (prompt || chance_.chance(config_.chaos.prompt_in)) {
      device.drop(line);
    } else {
      process.pending.push_back({{&device, line}, true});
    }
  }
  hosts_[process.host]->cache.note(&device, first, end - first);
}

void World::halt(Process& process) {
  has_halted_ = true;
  record(process, Event::halted, 0, 0, static_cast<std::uint64_t>(config_.halt.kind));
  if (config_.halt.kind == HaltKind::stop) {
    settle(process, false);
    sleep_until(process, clock_ns_ + config_.halt.stop_ns);
    record(process, Event::resumed, 0, 0, 0);
    return;
  }
  if (config_.halt.kind == HaltKind::power_loss) {
    for (const auto& other : processes_) {
      const bool same = hosts_[other->host]->machine == hosts_[process.host]->machine;
      if (same && other->state != Process::State::ended) die(*other);
    }
    for (const auto& host : hosts_) {
      if (host->machine == hosts_[process.host]->machine) lose_power(*host);
    }
  } else {
    settle(process, false);
    for (const auto& device : hosts_[process.host]->cache.devices()) {
      for (const std::uint64_t line : device->dirty_lines()) device->write(line);
    }
    die(process);
  }
  process.fiber->pause();  // comes back as a ghost
}

void World::die(Process& process) {
  process.state = Process::State::dead;
  process.pending.clear();
  for (const auto& [inode, description] : process.descriptions) {
    FileSystem::unlock_all(*inode, description);
  }
  process.descriptions.clear();
}

void World::lose_power(Host& host) {
  for (const auto& device : host.cache.devices()) {
    for (const std::uint64_t line : device->dirty_lines()) {
      if (chance_.chance(2)) device->write(line);
    }
    for (std::uint64_t line = 0; line < device->bytes() / kLine; ++line) device->lose(line);
  }
}

void World::end_ghosts() {
  for (const auto& process : processes_) {
    if (process->fiber->ended()) continue;
    process->is_ghost = true;
    process->ghost_ns = clock_ns_;
    while (!process->fiber->ended()) process->fiber->resume();
  }
}

Liveness World::liveness(const Process& asking, const ProcessIdentity& process) const {
  if (process == asking.identity) return Liveness::alive;
  if (process.boot_id != asking.identity.boot_id ||
      process.pid_namespace != asking.identity.pid_namespace) {
    return Liveness::unknown;
  }
  for (const auto& each : processes_) {
    if (each->identity != process) continue;
    const bool lives =
        each->state == Process::State::ready || each->state == Process::State::asleep;
    return lives ? Liveness::alive : Liveness::dead;
  }
  return Liveness::dead;
}

}  // namespace penstock::sim
