// Agreements of a real pool: processes of two hosts, of which one is killed.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>

#include "penstock/base/process_test.h"
#include "penstock/memory/agreement_members.h"
#include "penstock/memory/agreement_role.h"
#include "penstock/memory/superblock.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

using AgreementProcesses = PoolTest;

struct Sum {
  std::uint64_t sum;
  std::uint64_t author;
  std::uint64_t count;
};

constexpr int kProcesses = 4;
using Counts = std::atomic<std::uint64_t>[kProcesses];

void add(Pool& pool, int process, std::uint64_t times, Counts& counts) {
  Agreement agreement = Agreement::open(pool, 3).value();
  for (std::uint64_t turn = 0; turn < times; ++turn) {
    const auto next = [&](const Decision& newest) {
      auto state = from_agreement_value<Sum>(newest.value);
      state = {state.sum + 1, static_cast<std::uint64_t>(process), turn};
      return std::optional<AgreementValue>(to_agreement_value(state));
    };
    const auto decision = agreement.update(next, pool.platform().now_ns() + 30'000'000'000);
    ASSERT_EQ(decision.status().to_string(), "ok");
    counts[process].fetch_add(1);
  }
}

// Nothing that was added is lost, and nothing is added twice. The process that is killed may have
// got a decision of which it could not tell.
TEST_F(AgreementProcesses, add_up) {
  create(4 * kMiB, 1, 2);
  void* shared =
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& counts = *static_cast<Counts*>(shared);
  {
    std::vector<std::unique_ptr<Child>> children;
    for (int process = 0; process < kProcesses; ++process) {
      children.push_back(std::make_unique<Child>([&] {
        const auto pool = map(platform_, process % 2, Coherence::software);
        add(*pool, process, process == 0 ? 1'000'000 : 40, counts);
      }));
    }
    while (counts[0].load() < 5) platform_.sleep_ns(100'000);
    children[0]->kill();
    for (int process = 1; process < kProcesses; ++process) EXPECT_EQ(children[process]->wait(), 0);
  }
  std::uint64_t counted = 0;
  for (auto& count : counts) counted += count.load();
  const auto pool = map();
  const auto newest = Agreement::open(*pool, 3)->latest(platform_.now_ns() + 1'000'000'000);
  ASSERT_EQ(newest.status().to_string(), "ok");
  const std::uint64_t sum = from_agreement_value<Sum>(newest.value().value).sum;
  EXPECT_EQ(sum, newest.value().number);
  EXPECT_GE(sum, counted);
  EXPECT_LE(sum, counted + 1);
  ::munmap(shared, sizeof(Counts));
}

TEST_F(AgreementProcesses, a_role_of_a_killed_process_is_free_at_once) {
  create();
  Mailbox taken;
  Child child([&] {
    const auto pool = map();
    taken.send(RoleLease::acquire(*pool, 0, kMaxRoleDurationMs, UINT64_MAX).ok() ? 1 : 0);
    platform_.sleep_ns(60'000'000'000);
  });
  ASSERT_EQ(taken.receive(), 1);
  const auto pool = map();
  const std::uint64_t soon_ns = platform_.now_ns() + 20'000'000;
  const Status held = RoleLease::acquire(*pool, 0, 100, soon_ns).status();
  EXPECT_EQ(held.to_string(),
            fmt::format("deadline_exceeded: the role is held by process {} of host 0 under epoch 1",
                        child.pid()));
  child.kill();
  auto lease = RoleLease::acquire(*pool, 0, 100, platform_.now_ns() + 10'000'000'000);
  ASSERT_EQ(lease.status().to_string(), "ok");
  EXPECT_EQ(lease->epoch(), 2u);
  EXPECT_TRUE(lease->release(UINT64_MAX).ok());
}

TEST_F(AgreementProcesses, what_is_agreed_outlives_every_mapping) {
  create(4 * kMiB, 1, 3);
  const std::uint64_t deadline_ns = platform_.now_ns() + 10'000'000'000;
  {
    const auto pool = map(2);
    EXPECT_EQ(MembershipView::open(*pool)->join(deadline_ns)->epoch, 1u);
  }
  const auto pool = map(1);
  EXPECT_TRUE(MembershipView::open(*pool)->look(deadline_ns)->is_member(2));
  EXPECT_EQ(Agreement::open(*pool, 1)->latest(deadline_ns)->number, 0u);
  EXPECT_TRUE(pool->check().empty());
}

TEST_F(AgreementProcesses, a_damaged_block_is_found_by_the_pools_check) {
  create(4 * kMiB, 1, 2);
  const auto pool = map();
  ASSERT_TRUE(Agreement::open(*pool, 1)->propose(1, AgreementValue{}, UINT64_MAX).ok());
  EXPECT_TRUE(pool->check().empty());
  auto file = platform_.open(spec_, OpenMode::read_write).value();
  Superblock block;
  ASSERT_EQ(file->read_at(0, &block, sizeof block).value(), sizeof block);
  // History 1, slot 1, host 0: behind one history of 2 * 2 blocks, and one slot of 2.
  const std::uint64_t noise[32] = {1, 2, 3};
  static_assert(sizeof noise == 256, "a whole block");
  ASSERT_TRUE(file->write_at(block.agreement_offset + (4 + 2) * 256, noise, sizeof noise).ok());
  ASSERT_TRUE(file->write_at(block.agreement_offset + (4 + 2) * 256 + 128, noise, 128).ok());
  EXPECT_EQ(
      pool->check(),
      std::vector<std::string>{
          "history 1 of the pool's agreements: the agreement block of participant 0 in slot 1 "
          "is damaged: neither of its copies has a right checksum"});
}

}  // namespace
}  // namespace penstock
