#include "penstock/sim/systemc/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/descriptor/node_table.h"
#include "penstock/sim/systemc/register_offsets.h"

namespace penstock::systemc {
namespace {

constexpr std::uint64_t kPool = 1 << 20;  // bytes of the pool
constexpr std::uint32_t kDepthLog2 = 4;
constexpr std::uint32_t kDepth = 1u << kDepthLog2;
constexpr std::uint64_t kPatience = 3'000'000;  // cycles; nothing here takes as long

penstock_descriptor record(std::uint32_t opcode, std::uint32_t n_src, std::uint32_t n_dst) {
  penstock_descriptor d{};
  d.opcode = static_cast<std::uint8_t>(opcode);
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.n_src = static_cast<std::uint8_t>(n_src);
  d.n_dst = static_cast<std::uint8_t>(n_dst);
  return d;
}
penstock_descriptor copy_of(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  penstock_descriptor d = record(PENSTOCK_OP_COPY, 1, 1);
  d.src[0] = from;
  d.dst[0] = to;
  d.count = bytes;
  return d;
}
penstock_descriptor signal_of(std::uint64_t fence, std::uint64_t value) {
  penstock_descriptor d = record(PENSTOCK_OP_SIGNAL, 1, 1);
  d.dst[0] = fence;
  d.src[0] = value;
  return d;
}
penstock_descriptor wait_for(std::uint64_t fence, std::uint64_t value) {
  penstock_descriptor d = record(PENSTOCK_OP_WAIT, 2, 0);
  d.src[0] = fence;
  d.src[1] = value;
  return d;
}

// A host with a pool at penstock address 0, and queues whose rings lie beside it.
class Host : public ::testing::Test {
 protected:
  Host() : pool_memory_(kPool + 4096), rings_(ring_bytes()) {
    // On a page, as pools are.
    const auto misaligned = reinterpret_cast<std::uintptr_t>(pool_memory_.data()) % 4096;
    pool_ = {pool_memory_.data() + (4096 - misaligned) % 4096, kPool};
    pool_bus_ = card_.attach(pool_.data(), pool_.size());
    rings_bus_ = card_.attach(rings_.data(), rings_.size());
    set(kControl, 1);
    set(kClockKhz, 1000);
  }

  static std::size_t ring_bytes() { return 64 * (kDepth * 128 + kDepth * 32); }
  std::uint64_t ring(std::uint32_t q) const { return std::uint64_t{q} * kDepth * 160; }

  void set(std::uint32_t offset, std::uint32_t value) {
    ASSERT_TRUE(card_.write(offset, value)) << std::hex << offset;
  }
  std::uint32_t get(std::uint32_t offset) {
    std::uint32_t value = 0;
    EXPECT_TRUE(card_.read(offset, &value)) << std::hex << offset;
    return value;
  }
  void set64(std::uint32_t offset, std::uint64_t value) {
    set(offset, static_cast<std::uint32_t>(value));
    set(offset + 4, static_cast<std::uint32_t>(value >> 32));
  }
  static std::uint32_t queue(std::uint32_t q, std::uint32_t offset) {
    return kQueuesBase + q * kQueueBytes + offset;
  }
  void open(std::uint32_t q) {
    std::memset(rings_.data() + ring(q), 0, kDepth * 160);
    set64(queue(q, PENSTOCK_REGISTER_QUEUE_RING_LO), rings_bus_ + ring(q));
    set64(queue(q, PENSTOCK_REGISTER_QUEUE_COMPLETIONS_LO), rings_bus_ + ring(q) + kDepth * 128);
    set(queue(q, PENSTOCK_REGISTER_QUEUE_CONFIG), kDepthLog2);
    set(queue(q, PENSTOCK_REGISTER_QUEUE_TIMEOUT_MS), 1000);
    const std::uint32_t window = kWindowsBase + q * 16 * kWindowBytes;
    set64(window, 0);
    set64(window + 8, kPool);
    set64(window + 16, pool_bus_);
    set(window + 24, 3);
    set(queue(q, PENSTOCK_REGISTER_QUEUE_WINDOWS), 1);
    set(queue(q, PENSTOCK_REGISTER_QUEUE_CONTROL), 1);
    tail_[q] = seen_[q] = 0;
  }
  void submit(std::uint32_t q, const penstock_descriptor& d) {
    ASSERT_LT(tail_[q] - seen_[q], kDepth);
    std::memcpy(rings_.data() + ring(q) + std::size_t{tail_[q] % kDepth} * 128, &d, sizeof(d));
    set(queue(q, PENSTOCK_REGISTER_QUEUE_TAIL), ++tail_[q]);
  }
  bool poll(std::uint32_t q, penstock_completion* completion) {
    std::memcpy(completion,
                rings_.data() + ring(q) + kDepth * 128 + std::size_t{seen_[q] % kDepth} * 32,
                sizeof(*completion));
    if (completion->sequence != seen_[q] + 1u) return false;
    ++seen_[q];
    return true;
  }
  penstock_completion next(std::uint32_t q) {
    penstock_completion completion{};
    for (std::uint64_t waited = 0; !poll(q, &completion); waited += 50) {
      if (waited > kPatience) {
        ADD_FAILURE() << "queue " << q << " does not answer";
        return {};
      }
      card_.run(50);
    }
    return completion;
  }
  penstock_completion run(std::uint32_t q, const penstock_descriptor& d) {
    submit(q, d);
    return next(q);
  }
  std::uint64_t fence(std::uint64_t at) const {
    std::uint64_t value;
    std::memcpy(&value, pool_.data() + at, sizeof(value));
    return value;
  }
  void raise(std::uint64_t at, std::uint64_t value) {
    std::memcpy(pool_.data() + at, &value, sizeof(value));
  }

  Simulation card_;
  std::vector<std::byte> pool_memory_;
  std::span<std::byte> pool_;
  std::vector<std::byte> rings_;
  std::uint64_t pool_bus_ = 0, rings_bus_ = 0;
  std::map<std::uint32_t, std::uint32_t> tail_, seen_;
};

TEST_F(Host, IdentityAndUnknownRegisters) {
  EXPECT_EQ(get(kId), 0x4b545350u);
  EXPECT_EQ(get(kCapLimits) & 0xff, 64u);
  std::uint32_t value = 1;
  EXPECT_FALSE(card_.read(0x07c, &value));
  EXPECT_EQ(value, 0u);
  EXPECT_FALSE(card_.write(kId, 1));
}

TEST_F(Host, CopiesEveryAlignment) {
  open(3);
  for (std::size_t i = 0; i < kPool; ++i) pool_[i] = static_cast<std::byte>(i * 31 + i / 251);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t from = random() % 300000;
    const std::uint64_t to = 400000 + random() % 300000;
    const std::uint64_t bytes = i < 70 ? static_cast<std::uint64_t>(i) : random() % 20000;
    std::vector<std::byte> expected(pool_.begin(), pool_.end());
    std::memcpy(expected.data() + to, pool_.data() + from, bytes);
    penstock_descriptor d = copy_of(from, to, bytes);
    d.cookie = static_cast<std::uint64_t>(i) << 40;
    const penstock_completion c = run(3, d);
    ASSERT_EQ(c.status, PENSTOCK_OK);
    ASSERT_EQ(c.cookie, d.cookie);
    ASSERT_TRUE(std::equal(pool_.begin(), pool_.end(), expected.begin()))
        << from << " " << to << " " << bytes;
  }
}

// A later record reads what an earlier one of the queue wrote.
TEST_F(Host, RecordsOfAQueueSeeEachOther) {
  open(0);
  for (std::uint64_t i = 0; i < 8192; ++i) pool_[i] = static_cast<std::byte>(i % 251);
  for (std::uint64_t hop = 0; hop < 12; ++hop)
    submit(0, copy_of(hop * 16384, (hop + 1) * 16384, 8192));
  for (int i = 0; i < 12; ++i) ASSERT_EQ(next(0).status, PENSTOCK_OK);
  EXPECT_EQ(std::memcmp(pool_.data(), pool_.data() + 12 * 16384, 8192), 0);
}

TEST_F(Host, WindowsAndOverlapsAreRefused) {
  open(0);
  const std::vector<std::byte> before(pool_.begin(), pool_.end());
  const auto expect = [&](const penstock_descriptor& d, std::uint32_t status, std::uint32_t field,
                          std::uint64_t detail) {
    const penstock_completion c = run(0, d);
    EXPECT_EQ(c.status, status);
    EXPECT_EQ(c.field, field);
    EXPECT_EQ(c.detail, detail);
  };
  expect(copy_of(kPool - 63, 0, 64), PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, kPool - 63);
  expect(copy_of(0, kPool - 63, 64), PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, kPool - 63);
  expect(copy_of(0, 32, 64), PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, 32);
  expect(copy_of(0, 64, std::uint64_t{1} << 33), PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_COUNT,
         std::uint64_t{1} << 33);
  set(kWindowsBase + 24, 1);  // to read only
  expect(copy_of(0, 64, 64), PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, 64);
  EXPECT_TRUE(std::equal(pool_.begin(), pool_.end(), before.begin()));
}

TEST_F(Host, FencesRiseAndNeverFall) {
  open(0);
  raise(4096, 7);
  EXPECT_EQ(run(0, signal_of(4096, 5)).status, PENSTOCK_OK);
  EXPECT_EQ(fence(4096), 7u);
  EXPECT_EQ(run(0, signal_of(4096, 9)).status, PENSTOCK_OK);
  EXPECT_EQ(fence(4096), 9u);
  const penstock_completion seen = run(0, wait_for(4096, 8));
  EXPECT_EQ(seen.status, PENSTOCK_OK);
  EXPECT_EQ(seen.detail, 9u);
  penstock_descriptor late = wait_for(4096, 10);
  late.timeout_ms = 3;
  const penstock_completion missed = run(0, late);
  EXPECT_EQ(missed.status, PENSTOCK_DEADLINE_EXCEEDED);
  EXPECT_EQ(missed.detail, 9u);
}

// A queue that waits holds back its own records and no other's.
TEST_F(Host, AWaitHoldsBackItsQueueOnly) {
  for (std::uint32_t q = 0; q < 64; ++q) open(q);
  for (std::uint32_t q = 0; q < 63; ++q) {
    submit(q, wait_for(q * 64, 1));
    submit(q, signal_of(8192 + q * 64, 1));
  }
  EXPECT_EQ(run(63, copy_of(100000, 200000, 5000)).status, PENSTOCK_OK);
  card_.run(5000);
  penstock_completion c;
  for (std::uint32_t q = 0; q < 63; ++q) EXPECT_FALSE(poll(q, &c)) << q;
  for (std::uint32_t q = 63; q-- > 0;) {
    raise(q * 64, 1);
    EXPECT_EQ(next(q).status, PENSTOCK_OK);
    EXPECT_EQ(next(q).status, PENSTOCK_OK);
    EXPECT_EQ(fence(8192 + q * 64), 1u);
  }
}

TEST_F(Host, ABarrierMeetsEverybody) {
  constexpr std::uint32_t kRanks = 64;
  penstock_descriptor d = record(PENSTOCK_OP_BARRIER, 2, 1);
  d.count = kRanks;
  d.src[0] = 0;
  d.src[1] = 3;
  for (std::uint32_t q = 0; q < kRanks; ++q) open(q);
  penstock_completion c;
  for (std::uint32_t q = 0; q < kRanks; ++q) {
    d.dst[0] = q * 64;
    for (std::uint32_t other = 0; other < q; ++other) ASSERT_FALSE(poll(other, &c));
    submit(q, d);
    card_.run(500);
  }
  for (std::uint32_t q = 0; q < kRanks; ++q) EXPECT_EQ(next(q).status, PENSTOCK_OK) << q;
  d.dst[0] = 0;
  d.src[1] = 4;
  d.timeout_ms = 2;
  raise(64, 4);
  raise(128, 4);
  const penstock_completion late = run(0, d);
  EXPECT_EQ(late.status, PENSTOCK_DEADLINE_EXCEEDED);
  EXPECT_EQ(late.detail, 3u);
}

TEST_F(Host, CancelEndsWaitsAndWhatFollows) {
  open(0);
  submit(0, wait_for(0, 1));
  submit(0, copy_of(0, 4096, 64));
  card_.run(2000);
  EXPECT_EQ(get(queue(0, PENSTOCK_REGISTER_QUEUE_STATE)) & 8u, 8u);
  set(queue(0, PENSTOCK_REGISTER_QUEUE_CONTROL), 3);
  EXPECT_EQ(next(0).status, PENSTOCK_CANCELLED);
  EXPECT_EQ(next(0).status, PENSTOCK_CANCELLED);
  set(queue(0, PENSTOCK_REGISTER_QUEUE_CONTROL), 1);
  EXPECT_EQ(run(0, copy_of(0, 4096, 64)).status, PENSTOCK_OK);
}

TEST_F(Host, ADoorbellOutOfRangeStopsTheQueue) {
  open(0);
  open(1);
  EXPECT_EQ(run(0, record(PENSTOCK_OP_NOP, 0, 0)).status, PENSTOCK_OK);
  set(queue(0, PENSTOCK_REGISTER_QUEUE_TAIL), 0);  // backwards
  EXPECT_EQ(get(queue(0, PENSTOCK_REGISTER_QUEUE_STATE)) & 0xff04u, 0x0304u);
  EXPECT_EQ(get(kErrorCode), 3u);
  EXPECT_EQ(get(kStatus) & 4u, 4u);
  EXPECT_EQ(run(1, record(PENSTOCK_OP_NOP, 0, 0)).status, PENSTOCK_OK);
  set(kIrqError, 1);
  EXPECT_EQ(get(kStatus) & 4u, 0u);
  set(queue(0, PENSTOCK_REGISTER_QUEUE_CONTROL), 0);
  open(0);
  set(queue(0, PENSTOCK_REGISTER_QUEUE_TAIL), kDepth + 1);  // more than fit
  EXPECT_EQ(get(queue(0, PENSTOCK_REGISTER_QUEUE_STATE)) & 4u, 4u);
}

TEST_F(Host, BusErrorsAreToldWithTheirAddress) {
  open(0);
  card_.add_fault({pool_bus_ + 8192, 64, true, false});
  card_.add_fault({pool_bus_ + 65536, 64, false, true});
  penstock_completion c = run(0, copy_of(0, 100000, 16384));
  EXPECT_EQ(c.status, PENSTOCK_IO_ERROR);
  EXPECT_EQ(c.field, PENSTOCK_FIELD_SRC);
  EXPECT_EQ(c.detail, pool_bus_ + 8192);
  EXPECT_EQ(get(kErrorCode), 4u);
  EXPECT_EQ(get(kErrorAddress), static_cast<std::uint32_t>(pool_bus_ + 8192));
  c = run(0, copy_of(0, 61440, 8000));
  EXPECT_EQ(c.status, PENSTOCK_IO_ERROR);
  EXPECT_EQ(c.field, PENSTOCK_FIELD_DST);
  EXPECT_EQ(c.detail, pool_bus_ + 65536);
  c = run(0, wait_for(8192, 0));
  EXPECT_EQ(c.status, PENSTOCK_IO_ERROR);
  EXPECT_EQ(c.field, PENSTOCK_FIELD_SRC);
  card_.clear_faults();
  EXPECT_EQ(run(0, copy_of(0, 100000, 16384)).status, PENSTOCK_OK);
  // The ring itself.
  card_.add_fault({rings_bus_ + ring(0), kDepth * 128, true, false});
  c = run(0, copy_of(0, 100000, 16384));
  EXPECT_EQ(c.status, PENSTOCK_IO_ERROR);
  EXPECT_EQ(get(queue(0, PENSTOCK_REGISTER_QUEUE_STATE)) & 0xff04u, 0x0104u);
}

TEST_F(Host, ResetInTrafficLeavesACardThatWorks) {
  for (int round = 0; round < 20; ++round) {
    for (std::uint32_t q = 0; q < 4; ++q) open(q);
    for (std::uint32_t q = 0; q < 4; ++q)
      for (std::uint32_t i = 0; i < 6; ++i)
        submit(q, copy_of(q * 100000, q * 100000 + 50000, 20000 + i));
    card_.run(static_cast<std::uint64_t>(round) * 37);
    set(kControl, 2);
    while ((get(kStatus) & 1) != 0) card_.run(10);
    set(kControl, 1);
    EXPECT_EQ(get(queue(2, PENSTOCK_REGISTER_QUEUE_STATE)) & 1u, 0u);
    open(2);
    EXPECT_EQ(run(2, copy_of(0, 50000, 20000)).status, PENSTOCK_OK);
  }
}

// Rings that wrap many times, all queues at once, everything in order.
TEST_F(Host, ManyQueuesKeepTheirOrder) {
  std::mt19937 random(9);
  for (std::uint32_t q = 0; q < 64; ++q) open(q);
  std::map<std::uint32_t, std::uint64_t> submitted, completed;
  std::uint64_t done = 0;
  std::uint64_t rounds = 0;
  while (done < 64 * 60) {
    ASSERT_LT(++rounds, 200000u);
    const std::uint32_t q = random() % 64;
    if (submitted[q] < 60 && tail_[q] - seen_[q] < kDepth) {
      penstock_descriptor d;
      switch (random() % 4) {
        case 0:
          d = copy_of(q * 1000, 500000 + q * 1000, random() % 900);
          break;
        case 1:
          d = signal_of(1000000 / 64 * 64 + q * 64, submitted[q]);
          break;
        case 2:
          d = record(PENSTOCK_OP_NOP, 0, 0);
          break;
        default:
          d = record(99, 0, 0);
      }
      d.cookie = ++submitted[q];
      submit(q, d);
    }
    card_.run(random() % 30);
    for (std::uint32_t at = 0; at < 64; ++at) {
      penstock_completion c;
      while (poll(at, &c)) {
        ASSERT_EQ(c.cookie, ++completed[at]);
        ++done;
      }
    }
  }
}

// A table of one resource at `at`, whose nodes are the rows of `nodes`.
void lay_table(std::span<std::byte> pool, std::uint64_t at, std::uint64_t nodes) {
  auto* header = reinterpret_cast<penstock_node_table*>(pool.data() + at);
  const std::uint64_t bytes = penstock_node_table_init(header, 64, 1, 0, 2, 0, 0, 0);
  std::memset(pool.data() + at + sizeof(*header), 0, bytes - sizeof(*header));
  header->rows = 64;
  auto* cell = reinterpret_cast<std::int64_t*>(pool.data() + at + header->allocatable);
  std::fill(cell, cell + 64, 10);
  std::memcpy(pool.data() + at + header->bits, &nodes, sizeof(nodes));
}

TEST_F(Host, PlacesTasksOneAfterAnother) {
  constexpr std::uint64_t kTable = 0, kProgram = 65536, kTasks = 131072, kResults = 262144;
  open(0);
  lay_table(pool_, kTable, 0b1010);
  penstock_program program{};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.best = 1;
  program.n_ops = 1;
  program.ops[0].op = PENSTOCK_FILTER_FIT;
  program.ops[0].n = 1;
  std::memcpy(pool_.data() + kProgram, &program, sizeof(program));
  penstock_task task{};
  task.row = -1;
  task.request[0] = 6;
  for (int i = 0; i < 3; ++i)
    std::memcpy(pool_.data() + kTasks + i * sizeof(task), &task, sizeof(task));
  penstock_descriptor d = record(PENSTOCK_OP_SELECT, 3, 1);
  d.flags = PENSTOCK_FLAG_COMMIT;
  d.count = 3;
  d.src[0] = kTable;
  d.src[1] = kProgram;
  d.src[2] = kTasks;
  d.dst[0] = kResults;
  const auto rows = [&] {
    EXPECT_EQ(run(0, d).status, PENSTOCK_OK);
    std::vector<std::int32_t> found;
    for (int i = 0; i < 3; ++i)
      found.push_back(reinterpret_cast<const penstock_result*>(pool_.data() + kResults)[i].row);
    return found;
  };
  // Each node has room for one.
  EXPECT_EQ(rows(), (std::vector<std::int32_t>{1, 3, -1}));
  EXPECT_EQ(rows(), (std::vector<std::int32_t>{-1, -1, -1}));
  EXPECT_EQ(reinterpret_cast<const penstock_node_table*>(pool_.data())->generation, 2u);
  // Another table in the same place that looks like the one that the card holds.
  lay_table(pool_, kTable, 0b100100);
  reinterpret_cast<penstock_node_table*>(pool_.data())->generation = 2;
  set(queue(0, PENSTOCK_REGISTER_QUEUE_CONTROL), 0);
  open(0);
  EXPECT_EQ(rows(), (std::vector<std::int32_t>{2, 5, -1}));
}

TEST(Simulations, LiveSideBySide) {
  Simulation one, two;
  std::uint32_t value = 0;
  one.run(100);
  ASSERT_TRUE(two.read(kId, &value));
  ASSERT_TRUE(one.write(kClockKhz, 5));
  ASSERT_TRUE(two.read(kClockKhz, &value));
  EXPECT_EQ(value, 250000u);
  EXPECT_GT(one.cycle(), two.cycle());
}

}  // namespace
}  // namespace penstock::systemc
