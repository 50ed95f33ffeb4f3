// The host engines on a pool: which lines they flush when, and the clock that deadlines follow.
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/engine/host_engine.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/watching_platform_test.h"
#include "penstock/memory/fence.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

class HostEnginePoolTest : public PoolTest {
 protected:
  void open(Coherence coherence) {
    create();
    pool_ = map(watching_, 0, coherence);
    region_ = pool_->allocate(request(kMiB)).value();
    data_ = pool_->resolve(region_.address, kMiB);
    std::memset(data_, 0, kMiB);
    queue_ = Queue::create(pool_.get(), QueueConfig{}).value();
    engine_ = make_engine("simd").value();
    watching_.written.clear();
    watching_.invalidated.clear();
  }
  void TearDown() override {
    queue_.reset();
    pool_.reset();
    PoolTest::TearDown();
  }
  static penstock_descriptor make(std::uint8_t opcode, std::uint8_t n_src, std::uint8_t n_dst,
                                  std::uint64_t count = 0) {
    penstock_descriptor d{};
    d.opcode = opcode;
    d.version = 1;
    d.n_src = n_src;
    d.n_dst = n_dst;
    d.count = count;
    return d;
  }
  penstock_completion run(const penstock_descriptor& d) {
    EXPECT_TRUE(queue_->submit(d));
    engine_->advance(*queue_);
    penstock_completion completion{};
    completion.status = 99;
    (void)queue_->poll(&completion);
    return completion;
  }
  bool observed(std::uint64_t at, std::size_t bytes) {
    return WatchingPlatform::covers(watching_.invalidated, data_ + at, bytes);
  }
  bool published(std::uint64_t at, std::size_t bytes) {
    return WatchingPlatform::covers(watching_.written, data_ + at, bytes);
  }

  WatchingPlatform watching_;
  std::unique_ptr<Pool> pool_;
  Region region_;
  std::byte* data_ = nullptr;
  std::unique_ptr<Queue> queue_;
  std::shared_ptr<Engine> engine_;
};

// The pool offset and the host address of the same bytes are the same memory.
TEST_F(HostEnginePoolTest, AliasesAreSeenThrough) {
  open(Coherence::hardware);
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 2, 64);
  d.src[0] = region_.address + 1024;
  d.dst[0] = region_.address;
  d.dst[1] = penstock_address_host(data_);
  const penstock_completion c = run(d);
  EXPECT_EQ(c.status, std::uint32_t{PENSTOCK_INVALID_ARGUMENT});
  EXPECT_EQ(c.field, std::uint32_t{PENSTOCK_FIELD_DST});
  EXPECT_EQ(c.detail, d.dst[1]);
}

TEST_F(HostEnginePoolTest, CopyObservesItsSourceAndPublishesItsDestinations) {
  open(Coherence::software);
  alignas(64) std::byte mine[256] = {};
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 3, 256);
  d.src[0] = region_.address + 4096;
  d.dst[0] = region_.address + 8192;
  d.dst[1] = penstock_address_host(data_ + 12288);  // in the pool, too
  d.dst[2] = penstock_address_host(mine);
  EXPECT_EQ(run(d).status, 0u);
  EXPECT_TRUE(observed(4096, 256));
  EXPECT_TRUE(published(8192, 256));
  EXPECT_TRUE(published(12288, 256));
  EXPECT_FALSE(WatchingPlatform::touches(watching_.written, mine, sizeof(mine)));
  // Nothing that was only written is dropped, and nothing that was only read is written back.
  EXPECT_FALSE(WatchingPlatform::touches(watching_.invalidated, data_ + 8192, 256));
  EXPECT_FALSE(WatchingPlatform::touches(watching_.written, data_ + 4096, 256));
}

TEST_F(HostEnginePoolTest, NothingIsFlushedUnderHardwareCoherence) {
  open(Coherence::hardware);
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 1, 256);
  d.src[0] = region_.address + 4096;
  d.dst[0] = region_.address + 8192;
  EXPECT_EQ(run(d).status, 0u);
  EXPECT_FALSE(WatchingPlatform::touches(watching_.invalidated, data_, kMiB));
  EXPECT_FALSE(WatchingPlatform::touches(watching_.written, data_, kMiB));
}

TEST_F(HostEnginePoolTest, ReduceObservesTheListAndEverySource) {
  open(Coherence::software);
  penstock_address list[9];
  for (std::uint64_t s = 0; s < 9; ++s) list[s] = region_.address + 4096 * (s + 1);
  std::memcpy(data_, list, sizeof(list));
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE, 9, 1, 100);
  d.type = d.out_type = PENSTOCK_INT32;
  d.flags = PENSTOCK_FLAG_SRC_LIST;
  d.src[0] = region_.address;
  d.dst[0] = region_.address + 65536;
  EXPECT_EQ(run(d).status, 0u);
  EXPECT_TRUE(observed(0, sizeof(list)));
  for (std::uint64_t s = 0; s < 9; ++s) EXPECT_TRUE(observed(4096 * (s + 1), 400)) << s;
  EXPECT_TRUE(published(65536, 400));
}

TEST_F(HostEnginePoolTest, ARefusedDescriptorLeavesTheCachesAlone) {
  open(Coherence::software);
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 1, 256);
  d.src[0] = region_.address + 4096;
  d.dst[0] = region_.address + 4097;
  EXPECT_EQ(run(d).field, std::uint32_t{PENSTOCK_FIELD_DST});
  EXPECT_TRUE(watching_.invalidated.empty());
  EXPECT_TRUE(watching_.written.empty());
}

// One node with room for one task of a resource, whose commit is worked out by hand.
TEST_F(HostEnginePoolTest, SelectAndUpdatePublishTheCellsThatTheyChange) {
  open(Coherence::software);
  const std::uint64_t bytes =
      penstock_node_table_init(reinterpret_cast<penstock_node_table*>(data_), 64, 1, 1, 3, 1, 1, 2);
  auto* header = reinterpret_cast<penstock_node_table*>(data_);
  header->rows = 8;
  const TableView view = table_view(header);
  view.bit_column(PENSTOCK_BIT_NODE)[0] = 1u << 5;
  view.allocatable[5] = 100;

  constexpr std::uint64_t kProgram = 131072, kTask = 196608, kResult = 262144, kUpdates = 327680;
  ASSERT_LT(bytes, kProgram);
  auto* program = new (data_ + kProgram) penstock_program{};
  program->magic = PENSTOCK_PROGRAM_MAGIC;
  program->version = PENSTOCK_PROGRAM_VERSION;
  program->best = 1;
  auto* task = new (data_ + kTask) penstock_task{};
  task->request[0] = 7;
  task->row = -1;
  task->set_bits[0] = 2;
  task->count[0] = 1;  // free column 0
  // A count by domain, and one by row, which are lines apart; the row's domain is 0.
  task->n_raises = 2;
  task->raises[0] = {0, 0, 0, 0};
  task->raises[1] = {1, PENSTOCK_ROW_DOMAIN, 0, 0};
  penstock_descriptor d = make(PENSTOCK_OP_SELECT, 3, 1, 1);
  d.flags = PENSTOCK_FLAG_COMMIT;
  d.src[0] = region_.address;
  d.src[1] = region_.address + kProgram;
  d.src[2] = region_.address + kTask;
  d.dst[0] = region_.address + kResult;
  const penstock_completion c = run(d);
  ASSERT_EQ(c.status, 0u) << penstock_field_name(c.field) << c.detail;
  const auto* result = reinterpret_cast<const penstock_result*>(data_ + kResult);
  EXPECT_EQ(result->status, 0u);
  EXPECT_EQ(result->row, 5);
  EXPECT_EQ(view.requested[5], 7);
  EXPECT_EQ(view.free[5], 1);
  EXPECT_EQ(view.bit_column(2)[0], 1u << 5);
  EXPECT_EQ(header->generation, 1u);

  EXPECT_TRUE(observed(0, bytes));
  EXPECT_TRUE(observed(kProgram, sizeof(*program)));
  EXPECT_TRUE(observed(kTask, sizeof(*task)));
  EXPECT_TRUE(published(kResult, sizeof(*result)));
  EXPECT_TRUE(published(0, sizeof(*header)));
  const auto cell_published = [&](const void* cell, std::size_t size = 8) {
    return WatchingPlatform::covers(watching_.written, static_cast<const std::byte*>(cell), size);
  };
  EXPECT_TRUE(cell_published(view.requested + 5));
  EXPECT_TRUE(cell_published(view.scored + 5));
  EXPECT_TRUE(cell_published(view.gpu + 5));
  EXPECT_TRUE(cell_published(view.bit_column(2)));
  EXPECT_TRUE(cell_published(view.free + 5));
  EXPECT_EQ(view.count_column(0)[0], 1);
  EXPECT_EQ(view.count_column(1)[5], 1);
  EXPECT_TRUE(cell_published(view.count_column(0), 4));
  EXPECT_TRUE(cell_published(view.count_column(1) + 5, 4));

  watching_.written.clear();
  auto* update = new (data_ + kUpdates) penstock_update[3]{};
  update[0] = {PENSTOCK_UPDATE_ALLOCATABLE, PENSTOCK_UPDATE_SET, 0, 5, 0, 50};
  update[1] = {PENSTOCK_UPDATE_DOMAIN, PENSTOCK_UPDATE_SET, 0, 40, 0, 3};
  update[2] = {PENSTOCK_UPDATE_COUNT, PENSTOCK_UPDATE_ADD, 1, 60, 0, 9};
  penstock_descriptor u = make(PENSTOCK_OP_UPDATE, 2, 0, 3);
  u.src[0] = region_.address;
  u.src[1] = region_.address + kUpdates;
  EXPECT_EQ(run(u).status, 0u);
  EXPECT_EQ(view.allocatable[5], 50);
  EXPECT_EQ(header->generation, 2u);
  EXPECT_TRUE(observed(kUpdates, 3 * sizeof(*update)));
  EXPECT_TRUE(cell_published(view.allocatable + 5));
  EXPECT_EQ(view.domain_column(0)[40], 3);
  EXPECT_EQ(view.count_column(1)[60], 9);
  EXPECT_TRUE(cell_published(view.domain_column(0) + 40, 4));
  EXPECT_TRUE(cell_published(view.count_column(1) + 60, 4));
  EXPECT_TRUE(published(0, sizeof(*header)));
}

TEST_F(HostEnginePoolTest, DeadlinesFollowThePlatformsClock) {
  open(Coherence::hardware);
  penstock_descriptor wait = make(PENSTOCK_OP_WAIT, 2, 0);
  wait.src[0] = region_.address + 64;
  wait.src[1] = 9;
  wait.timeout_ms = 250;
  Fence(*pool_, data_ + 64).signal(4);
  EXPECT_EQ(run(wait).status, 99u);  // nothing yet
  watching_.clock_ns += 249'999'999;
  EXPECT_EQ(engine_->advance(*queue_), 0u);
  watching_.clock_ns += 1;
  EXPECT_EQ(engine_->advance(*queue_), 1u);
  penstock_completion c;
  ASSERT_TRUE(queue_->poll(&c));
  EXPECT_EQ(c.status, std::uint32_t{PENSTOCK_DEADLINE_EXCEEDED});
  EXPECT_EQ(c.detail, 4u);
  // The next one's time starts when it is first looked at; 0 is the queue's default of 30 s.
  wait.timeout_ms = 0;
  EXPECT_EQ(run(wait).status, 99u);
  watching_.clock_ns += 29'999'999'999;
  EXPECT_EQ(engine_->advance(*queue_), 0u);
  watching_.clock_ns += 1;
  EXPECT_EQ(engine_->advance(*queue_), 1u);
}

}  // namespace
}  // namespace penstock
