// What several processes do to one pool at the same time, and what dead ones leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include "penstock/base/process_test.h"
#include "penstock/memory/superblock.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using PoolProcesses = PoolTest;

// Memory that forked children share with the test, outside of any pool.
template <typename T>
class SharedPage {
 public:
  SharedPage()
      : memory_(
            ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~SharedPage() { ::munmap(memory_, sizeof(T)); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  T* operator->() const { return static_cast<T*>(memory_); }

 private:
  void* memory_;
};

struct Interval {
  std::uint64_t begin;
  std::uint64_t end;
};

constexpr int kWorkers = 3;
constexpr int kOperations = 3000;
constexpr int kMostLive = 40;

struct Outcome {
  Interval live[kWorkers][kMostLive];
  int count[kWorkers];
  int allocations[kWorkers];
  std::atomic<int> done;
};

struct Stamped {
  Region region;
  std::uint64_t stamp;
};

// Every page of a region carries its owner's stamp while the region lives.
void stamp(Pool& pool, const Stamped& each) {
  std::byte* memory = pool.resolve(each.region.address, each.region.bytes);
  ASSERT_NE(memory, nullptr);
  for (std::uint64_t at = 0; at < each.region.bytes; at += 4096) {
    std::memcpy(memory + at, &each.stamp, 8);
    std::memcpy(memory + at + 4088, &each.stamp, 8);
  }
}
bool is_intact(Pool& pool, const Stamped& each) {
  const std::byte* memory = pool.resolve(each.region.address, each.region.bytes);
  for (std::uint64_t at = 0; at < each.region.bytes; at += 4096) {
    if (std::memcmp(memory + at, &each.stamp, 8) != 0 ||
        std::memcmp(memory + at + 4088, &each.stamp, 8) != 0) {
      return false;
    }
  }
  return true;
}

void work(Pool& pool, int worker, Outcome* outcome) {
  std::mt19937_64 random(static_cast<std::uint64_t>(worker) + 1);
  std::vector<Stamped> live;
  for (int operation = 0; operation < kOperations; ++operation) {
    const bool grow = live.size() < 5 || (live.size() < kMostLive && random() % 2 == 0);
    if (grow) {
      RegionRequest request;
      request.bytes = 1 + random() % 30000;
      auto region = pool.allocate(request);
      if (!region.ok()) {
        ASSERT_EQ(region.status().code(), Code::no_space) << region.status().message();
        continue;
      }
      ++outcome->allocations[worker];
      live.push_back({region.value(), random()});
      stamp(pool, live.back());
    } else {
      const std::size_t victim = random() % live.size();
      ASSERT_TRUE(is_intact(pool, live[victim])) << "worker " << worker << " at " << operation;
      ASSERT_EQ(pool.free(live[victim].region).to_string(), "ok");
      live[victim] = live.back();
      live.pop_back();
    }
  }
  for (const Stamped& each : live) {
    ASSERT_TRUE(is_intact(pool, each));
    outcome->live[worker][outcome->count[worker]++] = {each.region.address,
                                                       each.region.address + each.region.bytes};
  }
}

void run_workers(const std::string& spec, std::uint32_t hosts, Coherence coherence) {
  SharedPage<Outcome> outcome;
  std::vector<std::unique_ptr<Child>> children;
  std::vector<std::unique_ptr<Mailbox>> finish;
  for (int worker = 0; worker < kWorkers; ++worker) {
    finish.push_back(std::make_unique<Mailbox>());
    children.push_back(std::make_unique<Child>([&, worker] {
      MapOptions options;
      options.coherence = coherence;
      options.host_id = static_cast<std::uint32_t>(worker) % hosts;
      auto pool = Pool::map(Platform::host(), spec, options);
      ASSERT_EQ(pool.status().to_string(), "ok");
      work(**pool, worker, &*outcome.operator->());
      outcome->done.fetch_add(1);
      (void)finish[static_cast<std::size_t>(worker)]->receive();  // regions live until then
    }));
  }
  Platform& platform = Platform::host();
  const std::uint64_t deadline_ns = platform.now_ns() + 50'000'000'000;
  while (outcome->done.load() < kWorkers && platform.now_ns() < deadline_ns) {
    platform.sleep_ns(1'000'000);
  }
  ASSERT_EQ(outcome->done.load(), kWorkers);

  std::vector<Interval> all;
  for (int worker = 0; worker < kWorkers; ++worker) {
    EXPECT_GT(outcome->allocations[worker], kOperations / 4);
    for (int i = 0; i < outcome->count[worker]; ++i) all.push_back(outcome->live[worker][i]);
  }
  ASSERT_GT(all.size(), 10u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_TRUE(all[i].end <= all[j].begin || all[j].end <= all[i].begin)
          << all[i].begin << " and " << all[j].begin;
    }
  }
  {
    auto pool = Pool::map(platform, spec).value();
    EXPECT_EQ(pool->regions().size(), all.size());
    EXPECT_TRUE(pool->check().empty());
  }
  for (auto& mailbox : finish) mailbox->send();
  for (auto& child : children) EXPECT_EQ(child->wait(), 0);
}

TEST_F(PoolProcesses, allocate_and_free_at_once_without_overlap) {
  create(2 * kMiB, 2);
  run_workers(spec_, 1, Coherence::hardware);
}

TEST_F(PoolProcesses, the_same_with_software_coherence_and_two_hosts) {
  create(4 * kMiB, 1, 2);
  run_workers(spec_, 2, Coherence::software);
}

TEST_F(PoolProcesses, a_killed_process_leaves_regions_that_the_next_takes_back) {
  create();
  Mailbox ready;
  Child child([&] {
    auto pool = map();
    EXPECT_TRUE(pool->allocate(request(8192, "one")).ok());
    EXPECT_TRUE(pool->allocate(request(4096)).ok());
    EXPECT_TRUE(pool->allocate(request(4096, "table", -1, true)).ok());
    auto lock = pool->lock(0, 1000);  // dies with the table lock in its hand
    EXPECT_TRUE(lock.ok());
    ready.send();
    ::pause();
  });
  ASSERT_EQ(ready.receive(), 1);
  auto pool = map_with_patience(500);
  EXPECT_EQ(pool, nullptr) << "the table lock is taken";
  const std::uint32_t pid = static_cast<std::uint32_t>(child.pid());
  child.kill();
  pool = map();
  ASSERT_NE(pool, nullptr);
  auto regions = pool->regions();
  ASSERT_EQ(regions.size(), 3u);
  for (const RegionInfo& info : regions) {
    EXPECT_EQ(info.lease.process.pid, pid);
    EXPECT_EQ(info.owner, Liveness::dead);
  }
  EXPECT_EQ(pool->check().size(), 2u);
  EXPECT_EQ(pool->reclaim().value(), 2u);
  regions = pool->regions();
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].name, "table");
  EXPECT_TRUE(regions[0].persistent);
  EXPECT_TRUE(pool->free(pool->find(RegionKind::user, "table").value()).ok());
  EXPECT_EQ(pool->devices()[0].used, 0u);
}

TEST_F(PoolProcesses, killed_at_any_moment_the_pool_stays_sound) {
  create(2 * kMiB);
  std::mt19937 random(3);
  for (int turn = 0; turn < 60; ++turn) {
    Mailbox ready;
    Child child([&] {
      auto pool = map();
      ready.send();
      for (std::uint64_t i = 0;; ++i) {
        auto region = pool->allocate(request(1 + i % 20000, fmt::format("r{}", i % 7)));
        if (i % 3 == 0 && region.ok()) (void)pool->free(*region);
      }
    });
    ASSERT_EQ(ready.receive(), 1);
    platform_.sleep_ns(random() % 2'000'000);
    child.kill();
  }
  auto pool = map();
  ASSERT_NE(pool, nullptr);
  for (const std::string& finding : pool->check()) {
    EXPECT_THAT(finding, ::testing::AnyOf(HasSubstr("was left by"), HasSubstr("counts as free")));
  }
  (void)pool->reclaim();
  EXPECT_TRUE(pool->check().empty());
  EXPECT_TRUE(pool->regions().empty());
  EXPECT_TRUE(pool->allocate(request(pool->devices()[0].free)).ok());
}

TEST_F(PoolProcesses, removal_names_who_maps_the_pool) {
  create();
  Mailbox ready;
  Child first([&] {
    auto pool = map();
    ready.send();
    ::pause();
  });
  Child second([&] {
    auto pool = map();
    ready.send();
    ::pause();
  });
  ASSERT_EQ(ready.receive(), 1);
  ASSERT_EQ(ready.receive(), 1);
  const std::string pids[] = {std::to_string(first.pid()), std::to_string(second.pid())};
  const Status both = Pool::destroy(platform_, spec_);
  EXPECT_EQ(both.code(), Code::busy);
  EXPECT_THAT(both.message(), ::testing::AllOf(HasSubstr(pids[0]), HasSubstr(pids[1])));
  first.kill();
  const Status one = Pool::destroy(platform_, spec_);
  EXPECT_EQ(one.code(), Code::busy);
  EXPECT_THAT(one.message(), ::testing::Not(HasSubstr("process " + pids[0])));
  EXPECT_THAT(one.message(), HasSubstr(pids[1]));
  second.kill();
  EXPECT_EQ(Pool::destroy(platform_, spec_).to_string(), "ok");
  EXPECT_FALSE(platform_.exists(spec_));
}

TEST_F(PoolProcesses, a_forked_child_gets_a_clear_error_and_leaves_its_parent_alone) {
  create();
  auto pool = map();
  const auto region = pool->allocate(request(4096, "mine")).value();
  Child child([&] {
    const Status refused = pool->allocate(request(1)).status();
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.message(), HasSubstr("forked child"));
    EXPECT_THAT(refused.message(), HasSubstr(std::to_string(::getpid())));
    EXPECT_EQ(pool->free(region).code(), Code::unsupported);
    EXPECT_EQ(pool->find(RegionKind::user, "mine").status().code(), Code::unsupported);
    EXPECT_EQ(pool->hold(region).code(), Code::unsupported);
    EXPECT_EQ(pool->drop(region).code(), Code::unsupported);
    EXPECT_EQ(pool->reclaim().status().code(), Code::unsupported);
    EXPECT_EQ(pool->lock(1, 0).status().code(), Code::unsupported);
    EXPECT_EQ(pool->check().size(), 1u);
    pool.reset();
    auto own = map();
    EXPECT_TRUE(own->allocate(request(4096)).ok());
    EXPECT_TRUE(own->find(RegionKind::user, "mine").ok());
  });
  EXPECT_EQ(child.wait(), 0);
  auto other = map();
  EXPECT_EQ(other->liveness(pool->lease()), Liveness::alive);
  EXPECT_EQ(other->reclaim().value(), 1u) << "only what the child made";
  EXPECT_TRUE(pool->free(region).ok());
}

// A forked child keeps the description of the parent's file open, and with it the parent's lock.
TEST_F(PoolProcesses, a_dead_parent_is_dead_while_its_child_lives) {
  create();
  Mailbox ready;
  SharedPage<pid_t> grandchild;
  Child parent([&] {
    auto pool = map();
    EXPECT_TRUE(pool->allocate(request(4096)).ok());
    const pid_t forked = ::fork();
    if (forked == 0) {
      ::pause();
      ::_exit(0);
    }
    *grandchild.operator->() = forked;
    ready.send();
    ::pause();
  });
  ASSERT_EQ(ready.receive(), 1);
  auto pool = map();
  EXPECT_EQ(pool->regions()[0].owner, Liveness::alive);
  parent.kill();
  EXPECT_EQ(pool->regions()[0].owner, Liveness::dead);
  EXPECT_EQ(pool->reclaim().value(), 1u);
  ASSERT_GT(*grandchild.operator->(), 1);
  ::kill(*grandchild.operator->(), SIGKILL);
}

TEST_F(PoolProcesses, many_start_at_once_and_one_makes_the_pool) {
  constexpr int kStarters = 6;
  for (int turn = 0; turn < 10; ++turn) {
    SharedPage<std::atomic<int>> made;
    Mailbox go;
    {
      std::vector<std::unique_ptr<Child>> children;
      for (int i = 0; i < kStarters; ++i) {
        children.push_back(std::make_unique<Child>([&] {
          (void)go.receive();
          const Status status = Pool::create(platform_, config(4 * kMiB, 2));
          if (status.ok()) made->fetch_add(1);
          EXPECT_TRUE(status.ok() || status.code() == Code::already_exists) << status.to_string();
          EXPECT_NE(map_when_there(), nullptr);
        }));
      }
      for (int i = 0; i < kStarters; ++i) go.send();
      for (auto& child : children) EXPECT_EQ(child->wait(), 0);
    }
    EXPECT_EQ(made->load(), 1);
    EXPECT_EQ(Pool::destroy(platform_, spec_).to_string(), "ok");
  }
}

TEST_F(PoolProcesses, every_lease_slot_can_be_taken_and_comes_back) {
  create();
  std::vector<std::unique_ptr<Pool>> pools;
  for (std::uint32_t i = 0; i < 256; ++i) {
    pools.push_back(map());
    ASSERT_NE(pools.back(), nullptr);
  }
  const Status full = Pool::map(platform_, spec_).status();
  EXPECT_EQ(full.code(), Code::no_space);
  EXPECT_THAT(full.message(), HasSubstr("mapped 256 times on host 0"));
  pools.erase(pools.begin() + 100);
  auto again = map();
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->lease().lock_slot, 100u);
}

}  // namespace
}  // namespace penstock
