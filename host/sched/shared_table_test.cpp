// A shared table in one process: schedulers, binders and a follower over one mapping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>

#include "penstock/memory/agreement_role.h"
#include "penstock/sched/binder.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/policy.h"
#include "penstock/sched/shared_table_follower.h"
#include "penstock/sched/shared_table_scheduler.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kTimeoutMs = 20000;

// A pool with a node table of two rows of 1000 cpu and one GPU each, shared as "s".
class SharedTableTest : public testing::TestWithParam<Coherence> {
 protected:
  void SetUp() override {
    static int made = 0;
    spec_ = "/dev/shm/penstock-shared-" + std::to_string(::getpid()) + "-" + std::to_string(made++);
    PoolConfig config;
    config.spec = spec_;
    config.bytes_per_device = 32u << 20;
    ASSERT_TRUE(Pool::create(Platform::host(), config).ok());
    MapOptions options;
    options.coherence = GetParam();
    pool_ = Pool::map(Platform::host(), spec_, options).value();
  }
  void TearDown() override {
    stop();
    pool_.reset();
    EXPECT_TRUE(Pool::destroy(Platform::host(), spec_).ok());
  }

  void share(std::uint32_t rows, std::uint32_t log = 64) {
    NodeTableConfig config;
    config.name = "nodes";
    config.capacity = rows;
    config.resources = {{"cpu", "milli"}, {"memory", "MiB"}, {"gpu", "milli"}};
    config.n_gpus = 1;
    table_ = NodeTable::create(pool_.get(), engine_, config).value();
    std::vector<NodeSpec> nodes(rows);
    for (std::uint32_t i = 0; i < rows; ++i) {
      nodes[i].facts.name = "n" + std::to_string(i);
      nodes[i].allocatable = {1000, 1000, 1000};
      nodes[i].gpus = 1;
    }
    ASSERT_TRUE(table_->add_nodes(nodes).ok());
    Policy policy;
    policy.name = "plain";
    policy.filters = {"ports", "fit", "gpu"};
    const Program program = compile_policy(policy, *table_).value();
    SharedTableConfig shared;
    shared.name = "s";
    shared.schedulers = 3;
    shared.binders = 2;
    shared.ring = 16;
    shared.log = log;
    shared.role_ms = 400;
    const Status status = SharedTable::create(*pool_, "nodes", program.record, shared);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void serve(std::uint32_t index) {
    stop();
    goes_on_ = true;
    binder_ = std::thread([this, index] {
      auto binder = Binder::open(*pool_, "s", index);
      ASSERT_TRUE(binder.ok()) << binder.status().to_string();
      const Status status = binder.value()->serve([this] { return goes_on_.load(); });
      EXPECT_TRUE(status.ok()) << status.to_string();
      statistics_ = binder.value()->statistics();
    });
  }
  void stop() {
    goes_on_ = false;
    if (binder_.joinable()) binder_.join();
  }
  std::unique_ptr<SharedScheduler> scheduler(std::uint32_t index) {
    auto made = SharedScheduler::open(*pool_, "s", index, engine_, kTimeoutMs);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? std::move(made).value() : nullptr;
  }
  // A record in the log of reign 1, as if its binder only now got round to the first request of
  // scheduler 1: on row 1.
  void write_late(const SharedTable& shared, std::uint64_t position, std::uint64_t cookie) {
    const Region old = shared.find_reign(1).value();
    std::byte* base = pool_->resolve(old.address, old.bytes);
    const ReignLayout layout(shared.header());
    LogRecord record;
    record.position = position;
    record.epoch = 1;
    record.scheduler = 1;
    record.outcome = {1, cookie, OutcomeStatus::done, RequestKind::place, 1, 0};
    record.task = task(500, 0, cookie).task;
    record.checksum = checksum_of(record);
    shared.memory().store(base + layout.record(position), &record, sizeof record);
    Fence(*pool_, base + layout.log_fence).signal(position);
  }
  static SharedTask task(std::int64_t cpu, std::uint32_t gpu_milli, std::uint64_t cookie) {
    SharedTask made;
    made.cookie = cookie;
    made.task.row = -1;
    made.task.request[0] = made.task.scored_request[0] = cpu;
    made.task.request[2] = made.task.scored_request[2] = gpu_milli;
    made.task.gpu_count = gpu_milli > 0;
    made.task.gpu_milli = gpu_milli;
    return made;
  }

  std::shared_ptr<Engine> engine_ = make_engine("simd,scalar").value();
  std::string spec_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<NodeTable> table_;
  std::thread binder_;
  std::atomic<bool> goes_on_{false};
  BinderStatistics statistics_;
};

TEST_P(SharedTableTest, WhoDecidesOnAnOldCopyDecidesAgain) {
  share(2);
  serve(0);
  auto a = scheduler(0), b = scheduler(1);
  ASSERT_TRUE(a && b);
  const std::vector<SharedTask> one = {task(600, 0, 7)};
  auto placed = a->place(one, 4, kTimeoutMs);
  ASSERT_TRUE(placed.ok()) << placed.status().to_string();
  EXPECT_EQ(placed.value()[0].status, PlacementStatus::placed);
  EXPECT_EQ(placed.value()[0].row, 0);
  // b has not looked since: it takes row 0, too, which has no room, and then row 1.
  placed = b->place(one, 4, kTimeoutMs);
  ASSERT_TRUE(placed.ok()) << placed.status().to_string();
  EXPECT_EQ(placed.value()[0].status, PlacementStatus::placed);
  EXPECT_EQ(placed.value()[0].row, 1);
  EXPECT_EQ(placed.value()[0].conflicts, 1u);
  EXPECT_EQ(b->outcomes().size(), 2u);
  EXPECT_EQ(b->outcomes()[0].status, OutcomeStatus::conflict);
  EXPECT_EQ(b->outcomes()[1].cookie, 7u);
  // Now both are full; what was given back can be taken again.
  ASSERT_TRUE(a->refresh().ok());
  EXPECT_EQ(a->place(one, 4, kTimeoutMs).value()[0].status, PlacementStatus::no_node);
  EXPECT_TRUE(b->release(one[0], 1, 0, kTimeoutMs).ok());
  EXPECT_EQ(b->release(one[0], 1, 0, kTimeoutMs).code(), Code::not_found);
  ASSERT_TRUE(a->refresh().ok());
  EXPECT_EQ(a->place(one, 4, kTimeoutMs).value()[0].row, 1);
  stop();
  EXPECT_EQ(statistics_.done, 4u);
  EXPECT_EQ(statistics_.conflicts, 1u);
  EXPECT_EQ(statistics_.refused, 1u);
}

TEST_P(SharedTableTest, ABatchSeesItselfAndOthersTakeGpusMeanwhile) {
  share(1);
  serve(0);
  auto a = scheduler(0), b = scheduler(1);
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->place(std::vector{task(0, 600, 1)}, 4, kTimeoutMs).value()[0].gpu_mask, 1u);
  // On b's old copy both fit; the binder knows that only the second does.
  const auto placed =
      b->place(std::vector{task(0, 500, 2), task(0, 400, 3), task(0, 100, 4)}, 8, kTimeoutMs);
  ASSERT_TRUE(placed.ok()) << placed.status().to_string();
  EXPECT_EQ(placed.value()[0].status, PlacementStatus::no_node);
  EXPECT_EQ(placed.value()[0].conflicts, 1u);
  EXPECT_EQ(placed.value()[1].status, PlacementStatus::placed);
  EXPECT_EQ(placed.value()[2].status, PlacementStatus::no_node);
  ASSERT_TRUE(a->refresh().ok());
  for (SharedScheduler* scheduler : {a.get(), b.get()}) {
    EXPECT_EQ(scheduler->table().gpu[0], 0);
    EXPECT_EQ(scheduler->table().column(scheduler->table().requested, 2)[0], 1000);
  }
}

// Nobody counts who set a bit, so that a copy in which it was set in vain is read anew.
TEST_P(SharedTableTest, APortThatAnotherTookIsNotTakenInTheCopyEither) {
  share(3);
  serve(0);
  auto a = scheduler(0), b = scheduler(1);
  ASSERT_TRUE(a && b);
  constexpr std::uint16_t kPort = 5;
  SharedTask port = task(100, 0, 1);
  port.task.set_bits[0] = kPort;
  port.task.n_terms = 1;
  port.task.terms[0] = {kPort, static_cast<std::uint8_t>(TermGroup::ports), 1, 0};
  ASSERT_EQ(a->place(std::vector{port}, 1, kTimeoutMs).value()[0].row, 0);
  const auto placed = b->place(std::vector{port, port}, 4, kTimeoutMs);
  ASSERT_TRUE(placed.ok()) << placed.status().to_string();
  // The copy of b had them on rows 0 and 1; only the first has to go elsewhere.
  EXPECT_EQ(placed.value()[0].row, 2);
  EXPECT_EQ(placed.value()[0].conflicts, 1u);
  EXPECT_EQ(placed.value()[1].row, 1);
  ASSERT_TRUE(a->refresh().ok());
  for (SharedScheduler* scheduler : {a.get(), b.get()}) {
    EXPECT_EQ(scheduler->table().bit_column(kPort)[0], 7u);
    for (std::uint32_t row = 0; row < 3; ++row) {
      EXPECT_EQ(scheduler->table().requested[row], 100);
    }
  }
  EXPECT_EQ(b->place(std::vector{port}, 4, kTimeoutMs).value()[0].status, PlacementStatus::no_node);
  EXPECT_EQ(b->release(port, 0, 0, kTimeoutMs).code(), Code::unsupported);
}

TEST_P(SharedTableTest, AnotherBinderGoesOnWhereTheLastOneStopped) {
  share(64);
  serve(0);
  auto a = scheduler(0);
  ASSERT_TRUE(a);
  std::map<std::uint64_t, int> seen;
  auto follower = LogFollower::open(*pool_, "s").value();
  const auto follow = [&] {
    const auto n = follower.poll([&](const LogRecord& record) {
      if (record.outcome.status == OutcomeStatus::done) ++seen[record.outcome.cookie];
    });
    ASSERT_TRUE(n.ok()) << n.status().to_string();
  };
  for (std::uint64_t round = 0; round < 6; ++round) {
    std::vector<SharedTask> tasks;
    for (std::uint64_t i = 0; i < 10; ++i) tasks.push_back(task(1000, 0, round * 10 + i));
    const auto placed = a->place(tasks, 4, kTimeoutMs);
    ASSERT_TRUE(placed.ok()) << placed.status().to_string();
    for (std::uint64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(placed.value()[i].status, PlacementStatus::placed) << round;
      EXPECT_EQ(placed.value()[i].row, round * 10 + i);
    }
    follow();
    serve(static_cast<std::uint32_t>((round + 1) % 2));
  }
  EXPECT_EQ(seen.size(), 60u);
  for (const auto& [cookie, times] : seen) EXPECT_EQ(times, 1) << cookie;
  EXPECT_GE(a->statistics().reigns, 5u);
  // A scheduler in the place of this one knows what its last requests were.
  a.reset();
  a = scheduler(0);
  ASSERT_TRUE(a);
  ASSERT_EQ(a->outcomes().size(), 16u);
  EXPECT_EQ(a->outcomes().back().cookie, 59u);
  EXPECT_EQ(a->outcomes().back().row, 59);
  EXPECT_EQ(a->place(std::vector{task(1000, 0, 60)}, 1, kTimeoutMs).value()[0].row, 60);
}

// Somebody has the role but no reign yet, so that all there is to read is the old log: what comes
// into it now may be found by the next binder, or not.
TEST_P(SharedTableTest, WithoutTheRoleNothingIsAnswered) {
  share(2);
  serve(0);
  auto b = scheduler(1);
  ASSERT_TRUE(b);
  stop();
  const SharedTable shared = SharedTable::open(*pool_, "s").value();
  RoleConfig config;
  config.duration_ms = 10000;
  config.owner = pool_->lease();
  Platform& platform = Platform::host();
  auto role =
      RoleLease::acquire(shared.agreement(1).value(), config, platform.now_ns() + 1'000'000'000);
  ASSERT_TRUE(role.ok()) << role.status().to_string();
  EXPECT_EQ(role.value().epoch(), 2u);
  std::thread late([&] {
    while (shared.requests_fence(1).load() < 1) std::this_thread::yield();
    write_late(shared, 1, 9);
  });
  const auto placed = b->place(std::vector{task(500, 0, 9)}, 1, 300);
  late.join();
  ASSERT_FALSE(placed.ok()) << "told of a record that may be lost";
  EXPECT_EQ(placed.status().code(), Code::deadline_exceeded);
  ASSERT_TRUE(role.value().release(platform.now_ns() + 1'000'000'000).ok());
  serve(1);
  while (!shared.find_reign(3)) std::this_thread::yield();
  ASSERT_TRUE(b->refresh().ok());
  // This one did find it, and did not handle the request again.
  ASSERT_EQ(b->outcomes().size(), 1u);
  EXPECT_EQ(b->outcomes()[0].row, 1);
  EXPECT_EQ(b->table().requested[0], 0);
  EXPECT_EQ(b->table().requested[1], 500);
}

// A binder that lost the role in the middle of a turn and wakes up ends that turn in its old log.
TEST_P(SharedTableTest, WhatALateBinderWritesIsNotBelieved) {
  share(2);
  serve(0);
  auto a = scheduler(0), b = scheduler(1);
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(a->place(std::vector{task(100, 0, 1)}, 1, kTimeoutMs).ok());
  serve(1);  // the first gives the role up
  const SharedTable shared = SharedTable::open(*pool_, "s").value();
  while (!shared.find_reign(2)) std::this_thread::yield();
  write_late(shared, 2, 7);
  for (SharedScheduler* scheduler : {a.get(), b.get()}) {
    ASSERT_TRUE(scheduler->refresh().ok());
    EXPECT_EQ(scheduler->table().requested[0], 100);
    EXPECT_EQ(scheduler->table().requested[1], 0);
    EXPECT_EQ(scheduler->statistics().reigns, 2u);
  }
  EXPECT_TRUE(b->outcomes().empty());
  auto follower = LogFollower::open(*pool_, "s").value();
  std::uint64_t seen = 0;
  ASSERT_TRUE(follower.poll([&](const LogRecord&) { ++seen; }).ok());
  EXPECT_EQ(seen, 1u);
}

TEST_P(SharedTableTest, TheLogGoesRoundAndWhoSleepsReadsACheckpoint) {
  share(2, 64);
  serve(0);
  auto a = scheduler(0), sleeper = scheduler(1);
  ASSERT_TRUE(a && sleeper);
  for (int i = 0; i < 150; ++i) {
    ASSERT_EQ(a->place(std::vector{task(700, 0, 1)}, 1, kTimeoutMs).value()[0].row, 0) << i;
    ASSERT_TRUE(a->release(task(700, 0, 1), 0, 0, kTimeoutMs).ok());
  }
  ASSERT_TRUE(a->place(std::vector{task(700, 0, 1)}, 1, kTimeoutMs).ok());
  ASSERT_TRUE(sleeper->refresh().ok());
  EXPECT_EQ(sleeper->table().requested[0], 700);
  const auto placed = sleeper->place(std::vector{task(700, 0, 2)}, 1, kTimeoutMs);
  ASSERT_TRUE(placed.ok());
  EXPECT_EQ(placed.value()[0].row, 1);
  EXPECT_EQ(placed.value()[0].conflicts, 0u);
}

TEST_P(SharedTableTest, EndWritesTheStateBackAndFreesEverything) {
  share(2);
  serve(0);
  auto a = scheduler(0);
  ASSERT_TRUE(a);
  ASSERT_TRUE(a->place(std::vector{task(300, 200, 1), task(900, 0, 2)}, 4, kTimeoutMs).ok());
  const Status busy = SharedTable::end(*pool_, "s");
  EXPECT_EQ(busy.code(), Code::busy);
  EXPECT_THAT(busy.message(), HasSubstr("scheduler 0"));
  EXPECT_EQ(table_->view().requested[0], 0) << "the table stands as it was shared";
  a.reset();
  stop();
  const Status ended = SharedTable::end(*pool_, "s");
  ASSERT_TRUE(ended.ok()) << ended.to_string();
  EXPECT_EQ(table_->view().requested[0], 300);
  EXPECT_EQ(table_->view().requested[1], 900);
  EXPECT_EQ(table_->view().gpu[0], 800);
  for (const RegionInfo& info : pool_->regions()) {
    EXPECT_FALSE(info.name.starts_with("s.")) << info.name;
  }
  EXPECT_EQ(SharedTable::open(*pool_, "s").status().code(), Code::not_found);
}

TEST_P(SharedTableTest, CreateAndOpenRefuseWhatMakesNoSense) {
  share(2);
  const penstock_program program = SharedTable::open(*pool_, "s").value().program();
  const auto made = [&](auto change, const char* table = "nodes") {
    SharedTableConfig config;
    config.name = "other";
    change(config);
    return SharedTable::create(*pool_, table, program, config).code();
  };
  EXPECT_EQ(made([](auto& c) { c.name = "s"; }), Code::already_exists);
  EXPECT_EQ(made([](auto& c) { c.name = ""; }), Code::invalid_argument);
  EXPECT_EQ(made([](auto& c) { c.name = "a/b"; }), Code::invalid_argument);
  EXPECT_EQ(made([](auto& c) { c.schedulers = 65; }), Code::invalid_argument);
  EXPECT_EQ(made([](auto& c) { c.binders = 0; }), Code::invalid_argument);
  EXPECT_EQ(made([](auto& c) { c.ring = 7; }), Code::invalid_argument);
  EXPECT_EQ(made([](auto& c) { c.log = 63; }), Code::invalid_argument);
  EXPECT_EQ(made([](auto& c) { c.role_ms = 9; }), Code::invalid_argument);
  EXPECT_EQ(made([](auto& c) { c.ring = 4096, c.schedulers = 64; }), Code::no_space);
  EXPECT_EQ(made([](auto&) {}, "nothing"), Code::not_found);
  penstock_program other = program;
  other.ops[0].column[0] = 9;
  SharedTableConfig config;
  config.name = "other";
  EXPECT_EQ(SharedTable::create(*pool_, "nodes", other, config).code(), Code::invalid_argument);
  // A board with a good checksum and a ring of nothing.
  const Region board = pool_->find(RegionKind::table, "s.board").value();
  std::byte* base = pool_->resolve(board.address, board.bytes);
  const SharedMemory memory(Platform::host(), GetParam());
  BoardHeader header;
  memory.load(&header, base, sizeof header);
  const BoardHeader sound = header;
  header.ring = 0;
  header.checksum = checksum_of(header);
  memory.store(base, &header, sizeof header);
  EXPECT_EQ(SharedTable::open(*pool_, "s").status().code(), Code::invalid_argument);
  header.checksum += 1;
  memory.store(base, &header, sizeof header);
  EXPECT_EQ(SharedTable::open(*pool_, "s").status().code(), Code::corrupt);
  memory.store(base, &sound, sizeof sound);
  EXPECT_TRUE(SharedTable::open(*pool_, "s").ok());
}

TEST_P(SharedTableTest, BadRequestsAreRefusedOneByOne) {
  share(2);
  const SharedTable shared = SharedTable::open(*pool_, "s").value();
  // Written past the scheduler: a damaged one, one with a row out of the table, and a good one.
  const auto write = [&](std::uint64_t sequence, std::int32_t row, bool damaged) {
    SharedRequest request;
    request.sequence = sequence;
    request.cookie = 100 + sequence;
    request.row = row;
    request.task = task(100, 0, 0).task;
    request.checksum = checksum_of(request) + damaged;
    shared.memory().store(shared.board() + shared.layout().request(2, sequence), &request,
                          sizeof request);
  };
  write(1, 0, true);
  write(2, 2, false);
  write(3, 1, false);
  shared.requests_fence(2).signal(3);
  serve(0);
  auto c = scheduler(2);
  ASSERT_TRUE(c);
  const auto outcomes = c->outcomes();
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(outcomes[0].status, OutcomeStatus::refused);
  EXPECT_EQ(outcomes[1].status, OutcomeStatus::refused);
  EXPECT_EQ(outcomes[2].status, OutcomeStatus::done);
  EXPECT_EQ(c->table().requested[0], 0);
  EXPECT_EQ(c->table().requested[1], 100);
  EXPECT_EQ(c->place(std::vector{task(1, 0, 0)}, 17, 1).status().code(), Code::invalid_argument);
  SharedTask bad = task(-1, 0, 9);
  EXPECT_THAT(c->place(std::vector{bad}, 1, 1).status().message(), HasSubstr("cookie 9"));
}

TEST_P(SharedTableTest, TheBinderChoosesWhenItIsAsked) {
  share(2);
  const SharedTable shared = SharedTable::open(*pool_, "s").value();
  const auto ask = [&](std::uint64_t sequence, std::int64_t cpu) {
    SharedRequest request;
    request.sequence = sequence;
    request.row = -1;
    request.task = task(cpu, 0, 0).task;
    request.checksum = checksum_of(request);
    shared.memory().store(shared.board() + shared.layout().request(2, sequence), &request,
                          sizeof request);
  };
  ask(1, 700);
  ask(2, 700);
  ask(3, 700);
  shared.requests_fence(2).signal(3);
  serve(0);
  auto c = scheduler(2);
  ASSERT_TRUE(c);
  const auto outcomes = c->outcomes();
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(outcomes[0].row, 0);
  EXPECT_EQ(outcomes[1].row, 1);
  EXPECT_EQ(outcomes[1].status, OutcomeStatus::done);
  EXPECT_EQ(outcomes[2].status, OutcomeStatus::no_node);
  EXPECT_EQ(c->table().requested[1], 700);
}

TEST_P(SharedTableTest, WithoutABinderAScheduleWaitsInVain) {
  share(2);
  const auto none = SharedScheduler::open(*pool_, "s", 0, engine_, 20);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::deadline_exceeded);
  EXPECT_THAT(none.status().message(), HasSubstr("nobody is its binder"));
  serve(0);
  auto a = scheduler(0);
  ASSERT_TRUE(a);
  EXPECT_EQ(SharedScheduler::open(*pool_, "s", 0, engine_, 20).status().code(), Code::busy);
  EXPECT_EQ(SharedScheduler::open(*pool_, "s", 3, engine_, 20).status().code(),
            Code::invalid_argument);
  EXPECT_EQ(Binder::open(*pool_, "s", 0).status().code(), Code::busy);
  EXPECT_EQ(Binder::open(*pool_, "s", 2).status().code(), Code::invalid_argument);
  stop();
  const auto late = a->place(std::vector{task(100, 0, 5)}, 1, 30);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.status().code(), Code::deadline_exceeded);
  // It is placed all the same, once somebody binds, and counted once.
  serve(1);
  ASSERT_TRUE(a->place(std::vector{task(200, 0, 6)}, 1, kTimeoutMs).ok());
  EXPECT_EQ(a->table().requested[0], 300);
  EXPECT_EQ(a->outcomes().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Coherences, SharedTableTest,
                         testing::Values(Coherence::hardware, Coherence::software),
                         [](const auto& given) { return coherence_name(given.param); });

}  // namespace
}  // namespace penstock
