#include "fault_scenario.h"

#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "fault_calls.h"
#include "penstock/base/forwarding_platform_test.h"
#include "ranks.h"

namespace penstock::test {
namespace {

constexpr std::uint32_t kStopTimeoutMs = 900;
constexpr std::uint32_t kKillTimeoutMs = 20'000;
// A death is noticed by looking, long before a deadline; this is room for a machine that is busy.
constexpr double kNoticeS = 4;
constexpr double kPatienceS = 90;  // for what never ends; a busy machine may take its time
constexpr int kCalls = 6;

std::uint64_t mix(std::uint64_t* state) {  // splitmix64
  std::uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

const char* name_of(Phase phase) {
  constexpr const char* kNames[] = {"join", "call", "split", "shrink", "leave"};
  return kNames[static_cast<int>(phase)];
}
const char* name_of(Point point) {
  constexpr const char* kNames[] = {"publish", "observe", "fence", "wait", "door", "microsecond"};
  return kNames[static_cast<int>(point)];
}

std::string describe(const Fault& fault) {
  return fmt::format("{} rank {} at {} {} of {}", fault.blow == Blow::kill ? "kill" : "stop",
                     fault.victim, name_of(fault.point), fault.nth, name_of(fault.phase));
}

// What the processes of a scenario tell the one that judges.
struct Shared {
  std::atomic<std::uint32_t> pids[kMaxRanks];
  std::atomic<std::uint32_t> struck[2];
  std::atomic<std::int64_t> struck_at_ns[2];
  std::atomic<std::uint32_t> shrunk;
};

Shared* struck_flags = nullptr;
int struck_index = 0;
int struck_signal = 0;

std::int64_t now_ns() {  // also in a signal's handler
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void strike() {
  struck_flags->struck_at_ns[struck_index].store(now_ns());
  struck_flags->struck[struck_index].store(1);
  ::kill(::getpid(), struck_signal);
}

// Counts the doors that a process passes, and strikes at the n-th.
class FaultPlatform final : public ForwardingPlatform {
 public:
  FaultPlatform(const Scenario& scenario, std::uint32_t rank) : scenario_(scenario), rank_(rank) {}

  void enter(Phase phase) {
    armed_ = nullptr;
    for (const Fault* fault : {&scenario_.first, &scenario_.second}) {
      if (!fault->present || fault->victim != rank_ || fault->phase != phase) continue;
      armed_ = fault;
      left_ = fault->nth;
      struck_index = fault == &scenario_.first ? 0 : 1;
      struck_signal = fault->blow == Blow::kill ? SIGKILL : SIGSTOP;
      if (fault->point != Point::time) return;
      ::signal(SIGALRM, [](int) { strike(); });
      const itimerval in = {{0, 0}, {0, static_cast<suseconds_t>(fault->nth)}};
      ::setitimer(ITIMER_REAL, &in, nullptr);
      return;
    }
    const itimerval never = {{0, 0}, {0, 0}};
    ::setitimer(ITIMER_REAL, &never, nullptr);
  }

  void write_back(const void* data, std::size_t bytes) override {
    pass(Point::publish);
    to_.write_back(data, bytes);
  }
  void invalidate(const void* data, std::size_t bytes) override {
    pass(Point::observe);
    to_.invalidate(data, bytes);
  }
  void store_fence() override {
    pass(Point::fence);
    to_.store_fence();
  }
  void pause() override {
    pass(Point::wait);
    to_.pause();
  }
  void yield() override {
    pass(Point::wait);
    to_.yield();
  }
  void sleep_ns(std::uint64_t ns) override {
    pass(Point::wait);
    to_.sleep_ns(ns);
  }

 private:
  void pass(Point point) {
    if (armed_ == nullptr || (armed_->point != point && armed_->point != Point::any)) return;
    if (--left_ > 0) return;
    armed_ = nullptr;
    strike();
  }

  const Scenario& scenario_;
  std::uint32_t rank_;
  const Fault* armed_ = nullptr;
  std::uint32_t left_ = 0;
};

// Whether "no sign of rank 0, 2, 3 in pool ..." lists `rank`: a rank that was stopped on its way in
// may keep others from coming, and whoever waits for them all can only name them all.
bool counts_as_missing(const std::string& message, std::uint32_t rank) {
  static constexpr char kBegin[] = "no sign of rank ";
  const std::size_t found = message.find(kBegin);
  if (found == std::string::npos) return false;
  for (const char* at = message.c_str() + found + sizeof(kBegin) - 1;;) {
    char* end = nullptr;
    const unsigned long listed = std::strtoul(at, &end, 10);
    if (end == at) return false;
    if (listed == rank) return true;
    if (end[0] != ',' || end[1] != ' ') return false;
    at = end + 2;
  }
}

class Stopwatch {
 public:
  double seconds() const { return 1e-9 * static_cast<double>(now_ns() - began_ns_); }

 private:
  std::int64_t began_ns_ = now_ns();
};

// How long the ranks, all of them together, could have run and had no CPU since this was made.
class Starvation {
 public:
  Starvation() {
    for (std::uint32_t rank = 0; rank < kMaxRanks; ++rank) before_s_[rank] = of(rank);
  }
  double seconds() const {
    double sum = 0;
    for (std::uint32_t rank = 0; rank < kMaxRanks; ++rank) {
      sum += std::max(0.0, of(rank) - before_s_[rank]);  // one that is gone adds nothing
    }
    return sum;
  }

 private:
  static double of(std::uint32_t rank) {
    const std::uint32_t pid = struck_flags->pids[rank].load();
    if (pid == 0) return 0;
    std::ifstream file(fmt::format("/proc/{}/schedstat", pid));
    double ran_ns = 0;
    double waited_ns = 0;
    return file >> ran_ns >> waited_ns ? 1e-9 * waited_ns : 0;
  }

  double before_s_[kMaxRanks];
};

// One rank from joining to leaving; what was wrong, or "".
class Life {
 public:
  Life(const Scenario& scenario, const std::string& pool, std::uint32_t rank)
      : scenario_(scenario), spec_(pool), rank_(rank), platform_(scenario, rank) {}

  std::string run() {
    struck_flags->pids[rank_].store(static_cast<std::uint32_t>(::getpid()));
    enter(Phase::join);
    MapOptions options;
    options.coherence = scenario_.incoherent ? Coherence::software : Coherence::hardware;
    options.lock_timeout_ms = scenario_.timeout_ms;
    Stopwatch watch;
    auto pool = Pool::map(platform_, spec_, options);
    if (!pool.ok()) return judge("map", pool.status(), watch, 1);
    CommConfig config;
    config.name = "test";
    config.rank = rank_;
    config.size = scenario_.ranks;
    config.timeout_ms = scenario_.timeout_ms;
    config.rank_bytes = 16384;
    config.engine = (scenario_.seed & 8) != 0 ? "simd,scalar" : "scalar";
    watch = Stopwatch();
    auto joined = Comm::join(**pool, config);
    if (!joined.ok()) return judge("join", joined.status(), watch, 3);
    std::unique_ptr<Comm> comm = std::move(joined).value();
    std::string wrong = use(*comm);
    if (wrong.empty() && failed_) wrong = recover(&comm);
    enter(Phase::leave);
    comm.reset();
    std::move(pool).value().reset();
    return wrong;
  }

 private:
  void enter(Phase phase) {
    starvation_ = Starvation();
    platform_.enter(phase);
  }
  bool is_victim() const {
    return rank_ == scenario_.first.victim ||
           (scenario_.second.present && rank_ == scenario_.second.victim);
  }
  bool anybody_stops() const {
    return scenario_.first.blow == Blow::stop ||
           (scenario_.second.present && scenario_.second.blow == Blow::stop);
  }

  // A death cannot be noticed before it.
  static double seconds_since_strike(const Stopwatch& watch) {
    const std::int64_t at =
        std::max(struck_flags->struck_at_ns[0].load(), struck_flags->struck_at_ns[1].load());
    return std::min(watch.seconds(), 1e-9 * static_cast<double>(now_ns() - at));
  }

  // A call that failed: in time, and with the culprit's name. `waits`: how many deadlines may pass.
  std::string judge(const char* what, const Status& status, const Stopwatch& watch, int waits) {
    failed_ = true;
    if (is_victim()) return "";  // one that woke late
    const bool deaths_only = !anybody_stops() && scenario_.first.phase != Phase::join;
    const double limit =
        (deaths_only ? 0 : waits * 1e-3 * scenario_.timeout_ms) + kNoticeS + starvation_.seconds();
    const double took = deaths_only ? seconds_since_strike(watch) : watch.seconds();
    if (took > limit) {
      return fmt::format("{} took {:.1f} s, not {:.1f}: {}", what, took, limit, status.to_string());
    }
    bool names = false;
    for (const Fault* fault : {&scenario_.first, &scenario_.second}) {
      if (!fault->present) continue;
      // Ranks of a smaller comm, or of a part, are other numbers; whoever has not come to the first
      // meeting has no known process.
      const std::uint32_t pid = struck_flags->pids[fault->victim].load();
      names = names || status.message().find(fmt::format("(pid {})", pid)) != std::string::npos ||
              counts_as_missing(status.message(), fault->victim);
    }
    // A process that was stopped with a lock in its hands.
    names = names || (anybody_stops() && status.message().find("lock") != std::string::npos);
    return names ? "" : fmt::format("{} does not name the culprit: {}", what, status.to_string());
  }

  std::string use(Comm& comm) {
    enter(Phase::call);
    for (int turn = 0; turn < kCalls; ++turn) {
      const Stopwatch watch;
      std::string wrong;
      const Status status = call_and_check(comm, scenario_.collective, scenario_.count, turn,
                                           scenario_.blocking, &wrong);
      if (!wrong.empty()) return wrong;
      if (!status.ok()) return judge("call", status, watch, 2);
    }
    if (scenario_.first.phase != Phase::split) return "";
    enter(Phase::split);
    const Stopwatch watch;
    auto part = comm.split(static_cast<std::int32_t>(rank_ % 2), 0);
    if (!part.ok()) return judge("split", part.status(), watch, 4);
    std::string wrong;
    const Stopwatch second;
    const Status status = sum(**part, &wrong);
    return status.ok() ? wrong : judge("sum of a part", status, second, 2);
  }

  // Each rank adds its bit, so that the sum says who was there.
  Status sum(Comm& comm, std::string* wrong) {
    std::vector<std::int64_t> data(40, std::int64_t{1} << rank_);
    Call call;
    call.collective = Collective::all_reduce;
    call.send = call.recv = data.data();
    call.count = data.size();
    call.type = PENSTOCK_INT64;
    PENSTOCK_TRY(comm.run(call));
    for (const std::int64_t value : data) {
      if (value != data[0]) *wrong = "elements of one sum differ";
    }
    if (__builtin_popcountll(static_cast<std::uint64_t>(data[0])) !=
            static_cast<int>(comm.size()) ||
        ((data[0] >> rank_) & 1) == 0) {
      *wrong = fmt::format("the sum of {} ranks is {:#b}", comm.size(), data[0]);
    }
    return {};
  }

  // What is left goes on; with a second fault in between, perhaps once more.
  std::string recover(std::unique_ptr<Comm>* comm) {
    enter(Phase::shrink);
    for (int attempt = 0; attempt < 4; ++attempt) {
      Stopwatch watch;
      auto smaller = (*comm)->shrink();
      if (!smaller.ok()) {
        const std::string wrong = judge("shrink", smaller.status(), watch, 8);
        if (!wrong.empty() || is_victim()) return wrong;
        // Survivors of kills get on; a lock may be in the hands of one that is stopped.
        return anybody_stops() ? "" : "shrink failed: " + smaller.status().to_string();
      }
      *comm = std::move(smaller).value();
      std::string wrong;
      watch = Stopwatch();
      const Status status = sum(**comm, &wrong);
      if (!wrong.empty()) return wrong;
      if (status.ok()) {
        if (!is_victim()) struck_flags->shrunk.store(1);
        return "";
      }
      wrong = judge("sum after shrink", status, watch, 2);
      if (!wrong.empty() || is_victim()) return wrong;
    }
    return "four times shrunk, and no sum";
  }

  const Scenario& scenario_;
  const std::string& spec_;
  std::uint32_t rank_;
  FaultPlatform platform_;
  bool failed_ = false;
  Starvation starvation_;  // since the phase began
};

// Two ranks that start afterwards, and what the pool holds when they have left.
std::string next_run(const std::string& pool) {
  std::string wrong = run_ranks(
      2,
      [&](std::uint32_t rank) -> std::string {
        auto member = join(pool, rank, 2, "test", Coherence::hardware, 10'000, 16384);
        if (!member.ok()) return member.status().to_string();
        std::string bad;
        const Status status =
            call_and_check(*member->comm, Collective::all_reduce, 100, 0, true, &bad);
        return status.ok() ? bad : status.to_string();
      },
      30);
  if (!wrong.empty()) return "the next run: " + wrong;
  auto mapped = Pool::map(Platform::host(), pool);
  if (!mapped.ok()) return "afterwards: " + mapped.status().to_string();
  for (const RegionInfo& region : (*mapped)->regions()) {
    wrong += fmt::format("left in the pool: {}; ", region.name);
  }
  for (const std::string& finding : (*mapped)->check()) wrong += finding + "; ";
  return wrong;
}

// Wakes whoever is stopped for longer than the others could wait for it.
void wake_late(const Scenario& scenario, const Ranks& ranks, std::uint32_t victim) {
  const Stopwatch watch;
  double stopped_at = -1;
  while (watch.seconds() < kPatienceS) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(ranks.pid(victim)), &info,
                 WSTOPPED | WEXITED | WNOHANG | WNOWAIT) != 0) {
      return;
    }
    if (info.si_pid != 0 && info.si_code != CLD_STOPPED) return;  // it has ended
    if (info.si_pid != 0 && stopped_at < 0) stopped_at = watch.seconds();
    if (stopped_at >= 0 && watch.seconds() > stopped_at + 1e-3 * scenario.timeout_ms + 0.6) {
      ::kill(ranks.pid(victim), SIGCONT);
      return;
    }
    ::usleep(5'000);
  }
}

}  // namespace

Scenario Scenario::of(std::uint64_t seed) {
  std::uint64_t state = seed * 0x2545f4914f6cdd1d + 1;
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(mix(&state) % n); };
  Scenario made;
  made.seed = seed;
  made.ranks = 2 + below(4);
  made.collective = static_cast<Collective>(below(kFaultCollectives));
  made.blocking = below(2) == 0;
  made.incoherent = below(4) != 0;
  constexpr std::uint32_t kCounts[] = {1, 40, 1000, 9000, 40'000};
  made.count = kCounts[below(5)];
  const auto fault = [&](Phase phase) {
    Fault one;
    one.present = true;
    one.victim = below(made.ranks);
    one.phase = phase;
    one.point = static_cast<Point>(below(6));
    // Without write-backs only waiting and time are points.
    if (!made.incoherent && one.point < Point::wait && phase == Phase::call) {
      one.point = Point::time;
    }
    // Mostly early, so that most faults come about.
    const std::uint32_t most = phase == Phase::leave ? 4 : below(6) == 0 ? 60 : 6;
    one.nth = 1 + below(one.point == Point::time ? (phase == Phase::leave ? 200 : 1200) : most);
    one.blow = below(6) == 0 ? Blow::stop : Blow::kill;
    return one;
  };
  constexpr Phase kPhases[] = {Phase::call, Phase::call, Phase::call,  Phase::call,
                               Phase::call, Phase::join, Phase::split, Phase::leave};
  made.first = fault(kPhases[below(8)]);
  if (made.first.phase == Phase::call && made.ranks > 2 && below(4) == 0) {
    made.second = fault(Phase::shrink);
    if (made.second.victim == made.first.victim) {
      made.second.victim = (made.second.victim + 1) % made.ranks;
    }
    made.second.blow = made.first.blow;
  }
  const bool short_wait = made.first.blow == Blow::stop || made.first.phase == Phase::join;
  made.timeout_ms = short_wait ? kStopTimeoutMs : kKillTimeoutMs;
  return made;
}

std::string Scenario::to_string() const {
  return fmt::format("seed {}: {} ranks, {} {} of {} elements, {}: {}{}{}", seed, ranks,
                     blocking ? "blocking" : "non-blocking", collective_name(collective), count,
                     incoherent ? "incoherent" : "coherent", describe(first),
                     second.present ? ", then " : "", second.present ? describe(second) : "");
}

Verdict run_scenario(const Scenario& scenario, const std::string& pool) {
  Verdict verdict;
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PENSTOCK_CHECK(memory != MAP_FAILED, "mmap");
  struck_flags = new (memory) Shared{};
  {
    Ranks ranks(scenario.ranks, [&](std::uint32_t rank) -> std::string {
      return Life(scenario, pool, rank).run();
    });
    if (scenario.first.blow == Blow::stop) {
      // Both victims stop in about the same time, one after the other.
      wake_late(scenario, ranks, scenario.first.victim);
      if (scenario.second.present) wake_late(scenario, ranks, scenario.second.victim);
    }
    const std::vector<RankEnd> ends = ranks.join(kPatienceS);
    for (std::uint32_t rank = 0; rank < ends.size(); ++rank) {
      const bool victim = rank == scenario.first.victim ||
                          (scenario.second.present && rank == scenario.second.victim);
      const bool killed = ends[rank].killed() && victim && (ends[rank].status & 0x7f) == SIGKILL &&
                          ends[rank].message.rfind("did not end", 0) != 0;
      if (killed || (ends[rank].status == 0 && ends[rank].message.empty())) continue;
      verdict.wrong +=
          fmt::format("rank {}: {} (status {:#x}); ", rank, ends[rank].message, ends[rank].status);
    }
  }
  verdict.struck = struck_flags->struck[0].load() != 0;
  verdict.struck_second = struck_flags->struck[1].load() != 0;
  verdict.shrunk = struck_flags->shrunk.load() != 0;
  ::munmap(memory, sizeof(Shared));
  struck_flags = nullptr;
  verdict.wrong += next_run(pool);
  return verdict;
}

}  // namespace penstock::test
