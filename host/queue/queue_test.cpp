#include "penstock/queue/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

QueueConfig of_depth(std::uint32_t depth) {
  QueueConfig config;
  config.depth = depth;
  return config;
}

penstock_descriptor nop(std::uint64_t cookie) {
  penstock_descriptor descriptor{};
  descriptor.version = PENSTOCK_DESCRIPTOR_VERSION;
  descriptor.cookie = cookie;
  return descriptor;
}

TEST(Queue, depth_is_a_power_of_two) {
  for (const std::uint32_t depth : {0u, 1u, 3u, 6u, 65535u, 131072u, UINT32_MAX}) {
    const Status status = Queue::create(nullptr, of_depth(depth)).status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << depth;
    EXPECT_THAT(status.message(), HasSubstr(fmt::format("depth {}:", depth)));
  }
  for (const std::uint32_t depth : {2u, 4u, 65536u}) {
    EXPECT_EQ(Queue::create(nullptr, of_depth(depth)).value()->depth(), depth);
  }
  QueueConfig no_time = of_depth(2);
  no_time.default_timeout_ms = 0;
  EXPECT_EQ(Queue::create(nullptr, no_time).status().code(), Code::invalid_argument);
}

TEST(Queue, completions_carry_what_they_answer) {
  auto queue = Queue::create(nullptr, of_depth(4)).value();
  EXPECT_EQ(queue->front(), nullptr);
  ASSERT_TRUE(queue->submit(nop(111)));
  ASSERT_TRUE(queue->submit(nop(222)));
  ASSERT_NE(queue->front(), nullptr);
  EXPECT_EQ(queue->front()->cookie, 111u);
  ASSERT_NE(queue->front(1), nullptr);
  EXPECT_EQ(queue->front(1)->cookie, 222u);
  EXPECT_EQ(queue->front(2), nullptr);
  queue->wait_began_ns = 5;
  queue->complete(PENSTOCK_OK);
  EXPECT_EQ(queue->wait_began_ns, 0u) << "the next WAIT has its own beginning";
  queue->complete(PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, 0xdead);
  EXPECT_EQ(queue->front(), nullptr);
  penstock_completion completion;
  ASSERT_TRUE(queue->poll(&completion));
  EXPECT_EQ(completion.cookie, 111u);
  EXPECT_EQ(completion.status, 0u);
  EXPECT_EQ(completion.sequence, 1u);
  ASSERT_TRUE(queue->poll(&completion));
  EXPECT_EQ(completion.cookie, 222u);
  EXPECT_EQ(completion.status, 3u);
  EXPECT_EQ(completion.field, 14u);
  EXPECT_EQ(completion.detail, 0xdeadu);
  EXPECT_EQ(completion.sequence, 2u);
  EXPECT_FALSE(queue->poll(&completion));
}

TEST(Queue, what_the_engine_keeps_goes_with_the_queue) {
  struct Side final : EngineSide {
    explicit Side(int* gone) : gone_(gone) {}
    ~Side() override { ++*gone_; }
    int* gone_;
  };
  int gone = 0;
  auto queue = Queue::create(nullptr, of_depth(4)).value();
  queue->engine_side = std::make_unique<Side>(&gone);
  EXPECT_EQ(gone, 0);
  queue.reset();
  EXPECT_EQ(gone, 1);
}

TEST(Queue, a_full_queue_refuses_until_a_completion_is_polled) {
  auto queue = Queue::create(nullptr, of_depth(4)).value();
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(queue->submit(nop(i)));
  EXPECT_EQ(queue->in_flight(), 4u);
  EXPECT_FALSE(queue->submit(nop(4)));
  queue->complete(PENSTOCK_OK);
  EXPECT_FALSE(queue->submit(nop(4))) << "its completion would have no place";
  penstock_completion completion;
  ASSERT_TRUE(queue->poll(&completion));
  EXPECT_EQ(queue->in_flight(), 3u);
  EXPECT_TRUE(queue->submit(nop(4)));
  EXPECT_FALSE(queue->submit(nop(5)));
}

TEST(QueueDeathTest, a_completion_without_descriptor_aborts) {
  auto queue = Queue::create(nullptr, of_depth(2)).value();
  EXPECT_DEATH(queue->complete(PENSTOCK_OK), "completion without a descriptor");
}

// Against a model: a plain list of what was accepted.
TEST(Queue, random_steps_give_each_accepted_descriptor_one_completion_in_order) {
  std::mt19937 random(5);
  auto queue = Queue::create(nullptr, of_depth(8)).value();
  std::uint64_t accepted = 0;
  std::uint64_t completed = 0;
  std::uint64_t polled = 0;
  int refused = 0;
  for (int step = 0; step < 100000; ++step) {
    switch (random() % 3) {
      case 0: {
        const bool room = accepted - polled < 8;
        ASSERT_EQ(queue->submit(nop(accepted)), room);
        room ? ++accepted : static_cast<std::uint64_t>(++refused);
        break;
      }
      case 1: {
        const penstock_descriptor* front = queue->front();
        ASSERT_EQ(front != nullptr, completed < accepted);
        if (front == nullptr) break;
        ASSERT_EQ(front->cookie, completed);
        queue->complete(PENSTOCK_OK);
        ++completed;
        break;
      }
      default: {
        penstock_completion completion;
        ASSERT_EQ(queue->poll(&completion), polled < completed);
        if (polled == completed) break;
        ASSERT_EQ(completion.cookie, polled);
        ASSERT_EQ(completion.sequence, ++polled);
      }
    }
    ASSERT_EQ(queue->in_flight(), accepted - polled);
  }
  EXPECT_GT(accepted, 20000u);
  EXPECT_GT(refused, 100);
}

TEST(Queue, submitter_and_engine_may_be_two_threads) {
  constexpr std::uint64_t kTotal = 200000;
  auto queue = Queue::create(nullptr, of_depth(16)).value();
  std::thread engine([&] {
    for (std::uint64_t done = 0; done < kTotal;) {
      const penstock_descriptor* front = queue->front();
      if (front == nullptr) {
        std::this_thread::yield();
        continue;
      }
      // All of the descriptor has arrived, not only its cookie.
      const bool whole = front->count == front->cookie * 3 && front->src[7] == front->cookie + 1;
      queue->complete(whole ? PENSTOCK_OK : PENSTOCK_CORRUPT, 0, front->cookie * 7);
      ++done;
    }
  });
  std::uint64_t submitted = 0;
  std::uint64_t polled = 0;
  std::uint64_t wrong = 0;
  while (polled < kTotal) {
    penstock_descriptor descriptor = nop(submitted);
    descriptor.count = submitted * 3;
    descriptor.src[7] = submitted + 1;
    bool moved = false;
    if (submitted < kTotal && queue->submit(descriptor)) {
      ++submitted;
      moved = true;
    }
    penstock_completion completion;
    while (queue->poll(&completion)) {
      if (completion.status != 0 || completion.cookie != polled ||
          completion.detail != polled * 7) {
        ++wrong;
      }
      ++polled;
      moved = true;
    }
    if (!moved) std::this_thread::yield();
  }
  engine.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(Queue, cancel_is_seen_and_can_be_taken_back) {
  auto queue = Queue::create(nullptr, of_depth(4)).value();
  EXPECT_TRUE(queue->submit(nop(1)));
  EXPECT_FALSE(queue->cancelled());
  queue->cancel();
  EXPECT_TRUE(queue->cancelled());
  EXPECT_TRUE(queue->submit(nop(2))) << "accepted, to be completed as cancelled";
  // What an engine does with a cancelled queue.
  while (queue->front() != nullptr) queue->complete(PENSTOCK_CANCELLED);
  penstock_completion completion;
  int cancelled = 0;
  while (queue->poll(&completion)) cancelled += completion.status == PENSTOCK_CANCELLED;
  EXPECT_EQ(cancelled, 2);
  EXPECT_EQ(queue->in_flight(), 0u);
  queue->reset_cancel();
  EXPECT_FALSE(queue->cancelled());
  EXPECT_TRUE(queue->submit(nop(3)));
}

TEST(Queue, host_memory_is_reached_where_it_is_allowed) {
  int local = 0;
  const penstock_address address = penstock_address_host(&local);
  auto queue = Queue::create(nullptr, of_depth(2)).value();
  EXPECT_EQ(queue->resolve(address, sizeof local, true), reinterpret_cast<std::byte*>(&local));
  EXPECT_EQ(queue->resolve(address, UINT64_MAX, true), nullptr);
  EXPECT_EQ(queue->resolve(penstock_address_host(nullptr), 8, true), nullptr);
  EXPECT_EQ(queue->resolve(penstock_address_make(0, 1 << 20), 8, false), nullptr) << "no pool";
  EXPECT_EQ(queue->resolve(penstock_address_make(0x80, 0), 8, false), nullptr) << "no such space";
  QueueConfig pool_only = of_depth(2);
  pool_only.host_memory = false;
  EXPECT_EQ(Queue::create(nullptr, pool_only).value()->resolve(address, 4, false), nullptr);
}

class QueueWindows : public PoolTest {};

TEST_F(QueueWindows, bound_what_descriptors_may_touch) {
  create(2 * kMiB, 2);
  auto pool = map();
  const auto region = pool->allocate(request(64 << 10, "", 1)).value();
  std::byte* memory = pool->resolve(region.address, region.bytes);

  auto whole = Queue::create(pool.get(), of_depth(2)).value();
  EXPECT_EQ(whole->pool(), pool.get());
  EXPECT_EQ(whole->resolve(region.address + 64, 64, true), memory + 64);
  EXPECT_EQ(whole->resolve(penstock_address_make(0, 0), 64, false), nullptr) << "the superblock";

  QueueConfig config = of_depth(2);
  config.windows = {{region.address + 4096, 8192, true, true},
                    {region.address + 16384, 4096, true, false},
                    {region.address + 20480, 4096, false, true}};
  auto queue = Queue::create(pool.get(), config).value();
  const auto reaches = [&](std::uint64_t at, std::uint64_t bytes, bool for_write) {
    std::byte* found = queue->resolve(region.address + at, bytes, for_write);
    EXPECT_TRUE(found == nullptr || found == memory + at);
    return found != nullptr;
  };
  EXPECT_TRUE(reaches(4096, 8192, true));
  EXPECT_TRUE(reaches(4096 + 8192, 0, true));
  EXPECT_FALSE(reaches(4095, 2, true));
  EXPECT_FALSE(reaches(4096, 8193, true));
  EXPECT_FALSE(reaches(4096, UINT64_MAX, true));
  EXPECT_FALSE(reaches(0, 64, false));
  EXPECT_TRUE(reaches(16384, 4096, false));
  EXPECT_FALSE(reaches(16384, 4096, true));
  EXPECT_TRUE(reaches(20480, 4096, true));
  EXPECT_FALSE(reaches(20480, 4096, false));
  EXPECT_FALSE(reaches(16384, 8192, false)) << "no access goes through two windows";
}

TEST_F(QueueWindows, have_to_lie_in_the_pool) {
  create(2 * kMiB);
  auto pool = map();
  QueueConfig config = of_depth(2);
  config.windows = {{penstock_address_make(0, 2 * kMiB - 4096), 4097, true, true}};
  const Status status = Queue::create(pool.get(), config).status();
  EXPECT_EQ(status.code(), Code::out_of_range);
  EXPECT_THAT(status.message(), HasSubstr("window 0"));
  EXPECT_EQ(Queue::create(nullptr, config).status().code(), Code::out_of_range);
}

}  // namespace
}  // namespace penstock
