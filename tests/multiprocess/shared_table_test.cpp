// Eight schedulers and three binders of a shared table as processes, of which any is killed or
// stopped at any time and replaced. Held against the log, read from the first record to the last:
// nothing is placed twice, what a scheduler was told is in the log, and the table is what the
// placements add up to.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "penstock/sched/binder.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/shared_table_follower.h"
#include "penstock/sched/shared_table_scheduler.h"
#include "ranks.h"

namespace penstock {
namespace {

constexpr std::uint32_t kSchedulers = 8;
constexpr std::uint32_t kBinders = 3;
constexpr std::uint32_t kTasks = PENSTOCK_SHARED_TASKS;  // of each scheduler
constexpr std::uint32_t kBatch = 6;
constexpr useconds_t kBatchPauseUs = 2'000'000 / ((PENSTOCK_SHARED_TASKS + kBatch - 1) / kBatch);
// One task of so many stays, the others are given back at once: the table gets full in the end.
constexpr std::uint32_t kStays = std::max(kTasks / 150, 4u);
constexpr std::uint32_t kRows = 96;
constexpr std::uint32_t kGpus = 4;
constexpr std::uint32_t kTimeoutMs = 60000;

enum : std::uint32_t { kUnknown = 0, kPlaced = 1, kDropped = 2, kReleased = 3 };
// What a scheduler was told about its tasks; outlives it.
struct Told {
  std::uint32_t what;
  std::int32_t row;
  std::uint32_t gpu_mask;
};

SharedTask make_task(std::uint64_t seed, std::uint32_t scheduler, std::uint32_t index) {
  std::mt19937_64 random(seed ^ (std::uint64_t{scheduler} << 40 | index));
  SharedTask made;
  made.cookie = std::uint64_t{scheduler} << 32 | index;
  made.task.row = -1;
  made.task.tie = random();
  made.task.request[0] = made.task.scored_request[0] = static_cast<std::int64_t>(random() % 400);
  made.task.gpu_count = random() % 4 == 0 ? 0 : 1 + random() % 8 / 7;
  if (made.task.gpu_count > 0) {
    made.task.gpu_milli = static_cast<std::uint32_t>(
        made.task.gpu_count > 1 || random() % 3 == 0 ? 1000 : 100 * (1 + random() % 9));
  }
  made.task.request[1] = made.task.scored_request[1] =
      std::int64_t{made.task.gpu_count} * made.task.gpu_milli;
  return made;
}

// What is known of a scheduler's last requests: those placed and those given back again, by index.
struct Known {
  std::map<std::uint32_t, SharedOutcome> placed;
  std::map<std::uint32_t, SharedOutcome> released;
  std::uint32_t batch = 0;  // everything before is through
};
Known known_of(const SharedScheduler& scheduler) {
  Known known;
  for (const SharedOutcome& outcome : scheduler.outcomes()) {
    const auto index = static_cast<std::uint32_t>(outcome.cookie);
    known.batch = std::max(known.batch, index / kBatch);
    if (outcome.status != OutcomeStatus::done) continue;
    (outcome.kind == RequestKind::place ? known.placed : known.released)[index] = outcome;
  }
  return known;
}

// Places a batch and gives most of it back, except what is known to be done already.
Status run_batch(SharedScheduler& scheduler, std::uint64_t seed, std::uint32_t index,
                 std::uint32_t batch, const Known& known, Told* told) {
  const std::uint32_t end = std::min(kTasks, (batch + 1) * kBatch);
  std::vector<SharedTask> tasks;
  for (std::uint32_t i = batch * kBatch; i < end; ++i) {
    const auto placed = known.placed.find(i);
    if (placed == known.placed.end()) {
      tasks.push_back(make_task(seed, index, i));
    } else {
      told[i] = {kPlaced, placed->second.row, placed->second.gpu_mask};
    }
  }
  PENSTOCK_ASSIGN(const auto placements, scheduler.place(tasks, kBatch, kTimeoutMs));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const SharedPlacement& placement = placements[i];
    if (placement.status == PlacementStatus::refused) return error(Code::internal, "refused");
    told[static_cast<std::uint32_t>(tasks[i].cookie)] = {
        placement.status == PlacementStatus::placed ? kPlaced : kDropped, placement.row,
        placement.gpu_mask};
  }
  for (std::uint32_t i = batch * kBatch; i < end; ++i) {
    if (told[i].what != kPlaced || i % kStays == 0) continue;
    if (!known.released.contains(i)) {
      PENSTOCK_TRY(
          scheduler.release(make_task(seed, index, i), told[i].row, told[i].gpu_mask, kTimeoutMs));
    }
    told[i].what = kReleased;
  }
  return {};
}

int schedule(const std::string& spec, std::uint64_t seed, std::uint32_t index, Told* told) {
  const auto fail = [index](const Status& status) {
    std::fprintf(stderr, "scheduler %u: %s\n", index, status.to_string().c_str());
    return 1;
  };
  auto pool = Pool::map(Platform::host(), spec);
  if (!pool.ok()) return fail(pool.status());
  auto opened = SharedScheduler::open(*pool.value(), "shared", index,
                                      make_engine("simd,scalar").value(), kTimeoutMs);
  if (!opened.ok()) return fail(opened.status());
  const Known known = known_of(*opened.value());
  for (std::uint32_t batch = known.batch; batch * kBatch < kTasks; ++batch) {
    const Status status = run_batch(*opened.value(), seed, index, batch, known, told);
    if (!status.ok()) return fail(status);
    // However fast the machine is, there is time to be killed in.
    ::usleep(kBatchPauseUs);
  }
  return 0;
}

volatile sig_atomic_t ends = 0;

int bind(const std::string& spec, std::uint32_t index) {
  ::signal(SIGTERM, [](int) { ends = 1; });
  auto pool = Pool::map(Platform::host(), spec);
  if (!pool.ok()) return 1;
  auto binder = Binder::open(*pool.value(), "shared", index);
  Status status = binder.ok() ? binder.value()->serve([] { return ends == 0; }) : binder.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "binder %u: %s\n", index, status.to_string().c_str());
  return 1;
}

class World {
 public:
  explicit World(std::uint64_t seed) : seed_(seed), random_(seed), pool_file_(1, 64u << 20) {
    told_ = static_cast<Told*>(::mmap(nullptr, kSchedulers * kTasks * sizeof(Told),
                                      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pool_ = Pool::map(Platform::host(), pool_file_.spec()).value();
  }
  ~World() {
    for (const auto& [pid, which] : processes_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    ::munmap(told_, kSchedulers * kTasks * sizeof(Told));
  }

  void share() {
    NodeTableConfig config;
    config.name = "nodes";
    config.capacity = kRows;
    config.resources = {{"cpu", "milli"}, {"gpu", "milli"}};
    config.n_gpus = kGpus;
    table_ = NodeTable::create(pool_.get(), make_engine("simd,scalar").value(), config).value();
    std::vector<NodeSpec> nodes(kRows);
    for (std::uint32_t i = 0; i < kRows; ++i) {
      nodes[i].facts.name = "n" + std::to_string(i);
      nodes[i].gpus = static_cast<std::uint32_t>(random_() % (kGpus + 1));
      nodes[i].allocatable = {static_cast<std::int64_t>(2000 + random_() % 6000),
                              std::int64_t{nodes[i].gpus} * 1000};
    }
    ASSERT_TRUE(table_->add_nodes(nodes).ok());
    Policy policy;
    policy.name = "best-fit";
    policy.filters = {"fit", "gpu"};
    policy.scores = {{"best-fit", 1}};
    const auto program = compile_policy(policy, *table_);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    SharedTableConfig shared;
    shared.name = "shared";
    shared.schedulers = kSchedulers;
    shared.binders = kBinders;
    shared.ring = 128;
    shared.log = 1024;
    shared.role_ms = 300;
    const Status status = SharedTable::create(*pool_, "nodes", program.value().record, shared);
    ASSERT_TRUE(status.ok()) << status.to_string();
    follower_.emplace(LogFollower::open(*pool_, "shared").value());
    agreement_.emplace(SharedTable::open(*pool_, "shared").value().agreement(0).value());
  }

  // Schedulers are 0..kSchedulers - 1, binders come after them.
  void start(std::uint32_t which) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      ::_exit(which < kSchedulers
                  ? schedule(pool_file_.spec(), seed_, which, told_ + which * kTasks)
                  : bind(pool_file_.spec(), which - kSchedulers));
    }
    processes_[pid] = which;
  }

  void follow() {
    const auto n = follower_->poll([this](const LogRecord& record) { take(record); });
    ASSERT_TRUE(n.ok()) << n.status().to_string();
  }

  // One process is killed and replaced, or sleeps for a while; the binder longer than it may.
  void disturb() {
    const bool binder = random_() % 3 == 0;
    std::vector<std::pair<pid_t, std::uint32_t>> candidates;
    for (const auto& [pid, which] : processes_) {
      if ((which >= kSchedulers) == binder) candidates.emplace_back(pid, which);
    }
    if (candidates.empty()) return;
    const auto [pid, which] = candidates[random_() % candidates.size()];
    // A log is kept until two more binders have begun.
    for (int i = 0; binder && i < 2000 && !is_up_to_date(); ++i) pause_ms(1);
    if (random_() % 4 == 0) {
      ::kill(pid, SIGSTOP);
      pause_ms(binder ? 400 : 60);
      ::kill(pid, SIGCONT);
      return;
    }
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    processes_.erase(pid);
    if (!WIFSIGNALED(status) && which < kSchedulers) return;  // it had just finished
    ++killed_;
    start(which);
  }

  void pause_ms(int ms) {
    for (int i = 0; i < ms && !testing::Test::HasFatalFailure(); ++i) {
      ::usleep(1000);
      follow();
    }
  }

  bool is_up_to_date() {
    return SharedTable::role_epoch(&*agreement_).value() == follower_->epoch();
  }

  // Takes note of schedulers that finished; how many still run.
  std::size_t running() {
    std::size_t n = 0;
    for (auto at = processes_.begin(); at != processes_.end();) {
      int status = 0;
      const auto [pid, which] = *at;
      if (::waitpid(pid, &status, WNOHANG) != pid) {
        n += which < kSchedulers;
        ++at;
        continue;
      }
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "process " << which;
      EXPECT_LT(which, kSchedulers) << "a binder ended by itself";
      at = processes_.erase(at);
    }
    return n;
  }

  void end() {
    follow();
    for (const auto& [pid, which] : processes_) {
      ::kill(pid, SIGTERM);
      int status = 0;
      ::waitpid(pid, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "binder";
    }
    processes_.clear();
    follow();
    const Status status = SharedTable::end(*pool_, "shared");
    ASSERT_TRUE(status.ok()) << status.to_string();
  }

  void check() {
    const TableView view = table_->view();
    for (std::uint32_t row = 0; row < kRows; ++row) {
      for (std::uint32_t r = 0; r < 2; ++r) {
        const std::int64_t requested = view.column(view.requested, r)[row];
        EXPECT_EQ(requested, requested_[row][r]) << "row " << row;
        EXPECT_LE(requested, view.column(view.allocatable, r)[row]) << "row " << row;
      }
      std::int64_t free = 0;
      for (std::uint32_t s = 0; s < kGpus; ++s) {
        const std::int64_t cell = view.column(view.gpu, s)[row];
        EXPECT_GE(cell, 0);
        EXPECT_LE(cell, 1000);
        free += cell;
      }
      EXPECT_EQ(free, view.column(view.allocatable, 1)[row] - requested_[row][1]);
    }
    std::size_t placed = 0, dropped = 0;
    for (std::uint32_t scheduler = 0; scheduler < kSchedulers; ++scheduler) {
      for (std::uint32_t i = 0; i < kTasks; ++i) {
        const Told& told = told_[scheduler * kTasks + i];
        const auto logged = placed_.find(std::uint64_t{scheduler} << 32 | i);
        EXPECT_EQ(released_.contains(std::uint64_t{scheduler} << 32 | i), told.what == kReleased);
        if (told.what == kPlaced || told.what == kReleased) {
          ++placed;
          ASSERT_NE(logged, placed_.end()) << scheduler << " task " << i << " was lost";
          EXPECT_EQ(logged->second.row, told.row);
          EXPECT_EQ(logged->second.gpu_mask, told.gpu_mask);
        } else {
          ++dropped;
          EXPECT_EQ(logged, placed_.end()) << scheduler << " task " << i << " was told otherwise";
        }
      }
    }
    std::printf(
        "%zu placed, %zu without a node, %zu conflicts, %zu processes killed, %llu records in "
        "%llu reigns\n",
        placed, dropped, conflicts_, killed_,
        static_cast<unsigned long long>(follower_->position()),
        static_cast<unsigned long long>(follower_->epoch()));
    EXPECT_GT(placed, kSchedulers * kTasks / 20);
    EXPECT_GT(killed_, 0u);
  }

 private:
  void take(const LogRecord& record) {
    const SharedOutcome& outcome = record.outcome;
    EXPECT_EQ(outcome.sequence, ++sequences_[record.scheduler]) << "scheduler " << record.scheduler;
    conflicts_ += outcome.status == OutcomeStatus::conflict;
    EXPECT_NE(outcome.status, OutcomeStatus::refused);
    if (outcome.status != OutcomeStatus::done) return;
    const bool place = outcome.kind == RequestKind::place;
    EXPECT_TRUE(place ? placed_.emplace(outcome.cookie, outcome).second
                      : released_.insert(outcome.cookie).second)
        << (place ? "placed twice: " : "given back twice: ") << std::hex << outcome.cookie;
    const SharedTask task = make_task(seed_, static_cast<std::uint32_t>(outcome.cookie >> 32),
                                      static_cast<std::uint32_t>(outcome.cookie));
    for (std::uint32_t r = 0; r < 2; ++r) {
      requested_[outcome.row][r] += (place ? 1 : -1) * task.task.request[r];
    }
  }

  const std::uint64_t seed_;
  std::mt19937_64 random_;
  test::ScopedPool pool_file_;
  Told* told_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<NodeTable> table_;
  std::optional<LogFollower> follower_;
  std::optional<Agreement> agreement_;
  std::map<pid_t, std::uint32_t> processes_;
  std::map<std::uint32_t, std::uint64_t> sequences_;
  std::map<std::uint64_t, SharedOutcome> placed_;
  std::set<std::uint64_t> released_;
  std::map<std::int32_t, std::array<std::int64_t, 2>> requested_;
  std::size_t conflicts_ = 0;
  std::size_t killed_ = 0;
};

TEST(SharedTable, NothingIsLostOrPlacedTwiceWhoeverDies) {
  const char* given = std::getenv("PENSTOCK_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("PENSTOCK_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  World world(seed);
  world.share();
  for (std::uint32_t which = 0; which < kSchedulers + kBinders; ++which) world.start(which);
  std::mt19937_64 random(seed + 1);
  for (std::uint32_t action = 0; !HasFatalFailure(); ++action) {
    world.pause_ms(static_cast<int>(1 + random() % 20));
    if (world.running() == 0) break;
    if (action < PENSTOCK_SHARED_ACTIONS) world.disturb();
  }
  if (HasFatalFailure()) return;
  world.end();
  world.check();
}

}  // namespace
}  // namespace penstock
