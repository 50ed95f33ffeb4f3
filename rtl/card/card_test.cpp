// The whole card: what only shows where all blocks are together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>

#include "penstock/descriptor/node_table.h"
#include "penstock/rtl/card/card_test_rig.h"

namespace penstock::rtl {
namespace {

using Expected = CardQueue::Expected;
constexpr std::uint64_t kPool = CardRig::kPool;

penstock_descriptor make(std::uint8_t opcode, std::uint8_t n_src, std::uint8_t n_dst) {
  penstock_descriptor d{};
  d.opcode = opcode;
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.n_src = n_src;
  d.n_dst = n_dst;
  return d;
}
penstock_descriptor make_copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 1);
  d.dst[0] = dst;
  d.src[0] = src;
  d.count = bytes;
  return d;
}
penstock_descriptor make_fence(std::uint8_t opcode, std::uint64_t fence, std::uint64_t value) {
  const bool raises = opcode != PENSTOCK_OP_WAIT;
  penstock_descriptor d = make(opcode, opcode == PENSTOCK_OP_SIGNAL ? 1 : 2, raises ? 1 : 0);
  if (raises) d.dst[0] = fence;
  d.src[0] = opcode == PENSTOCK_OP_SIGNAL ? value : fence;
  if (opcode != PENSTOCK_OP_SIGNAL) d.src[1] = value;
  d.count = opcode == PENSTOCK_OP_BARRIER ? 1 : 0;
  return d;
}

class Card : public testing::Test {
 protected:
  CardRig& start(const sim::AxiConfig& axi) {
    queues_.clear();
    rig_ = std::make_unique<CardRig>(axi);
    return *rig_;
  }
  CardRig& start(std::uint64_t seed) {
    sim::AxiConfig axi;
    axi.seed = seed;
    return start(axi);
  }
  CardQueue& queue(std::uint32_t number, std::uint32_t depth_log2 = 4) {
    return queues_.emplace_back(*rig_, number, depth_log2);
  }
  void run(std::uint64_t limit) {
    for (CardQueue& q : queues_)
      if (q.polled() != q.submitted()) q.doorbell();
    ASSERT_EQ(drain(*rig_, queues_, limit), "");
    EXPECT_EQ(rig_->difference(), -1);
  }
  // A fold of anything that the card folds, or a copy, anywhere in [from, from + 0x3e00).
  void submit_move(CardQueue& q, std::uint64_t from, std::uint64_t most_bytes);

  std::unique_ptr<CardRig> rig_;
  std::list<CardQueue> queues_;
};

void Card::submit_move(CardQueue& q, std::uint64_t from, std::uint64_t most_bytes) {
  sim::Random& random = rig_->random;
  const auto below = [&](std::uint64_t bound) {
    return random.below(static_cast<std::uint32_t>(bound));
  };
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, static_cast<std::uint8_t>(1 + below(3)));
  std::uint64_t src_size = 1, dst_size = 1;
  if (!random.chance(4)) {
    d.opcode = PENSTOCK_OP_REDUCE;
    d.n_src = static_cast<std::uint8_t>(1 + below(8));
    do d.type = static_cast<std::uint8_t>(below(PENSTOCK_TYPE_COUNT));
    while (d.type == PENSTOCK_F64);
    d.redop = static_cast<std::uint8_t>(below(PENSTOCK_REDOP_COUNT));
    d.out_type = d.type;
    if (d.type >= PENSTOCK_F16 && random.chance(3)) d.out_type = PENSTOCK_BF16;
    if (d.redop == PENSTOCK_PREMUL_SUM) d.scale = 0x3fc00000;
    src_size = penstock_type_size(d.type);
    dst_size = penstock_type_size(d.out_type);
  }
  d.count = below(most_bytes / std::max(src_size, dst_size) + 1);
  // Destinations in three parts of the second half, sources anywhere in the first, or in place.
  for (std::uint32_t i = 0; i < d.n_dst; ++i)
    d.dst[i] = from + 0x2000 + 0xa00 * i + below(0xa00 - d.count * dst_size);
  for (std::uint32_t i = 0; i < d.n_src; ++i) d.src[i] = from + below(0x2000 - d.count * src_size);
  if (src_size == dst_size && random.chance(4)) {
    d.dst[0] = d.src[0];
    for (std::uint32_t i = 1; i < d.n_src; ++i) d.src[i] = d.src[0];
  }
  rig_->perform(d, {d.src, d.src + d.n_src});
  q.submit(d, {});
}

TEST_F(Card, SaysWhatItIs) {
  CardRig& rig = start(1);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_ID), 0x4b545350u);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_VERSION), 0x10000u);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_CAP_OPCODES), 0x13fu);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_CAP_LIMITS), 0x03401040u);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_CAP_TABLE), 0x10000808u);
  rig.card.run(500);  // its memories are being emptied
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_STATUS), 2u);
  std::uint32_t value = 0;
  EXPECT_FALSE(rig.card.read(0x2000, &value));
  EXPECT_FALSE(rig.card.write(PENSTOCK_REGISTER_ID, 1));
}

TEST_F(Card, NopTakesSixtyCyclesBesideMemory) {
  sim::AxiConfig axi;
  axi.fixed = true;
  axi.read_latency = axi.write_latency = 100;
  CardRig& rig = start(axi);
  CardQueue& q = queue(63);
  rig.write(PENSTOCK_REGISTER_IRQ_MASK_HI, 0x80000000);
  q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
  const std::uint64_t before = rig.card.cycle();
  q.doorbell();
  while (!rig.card.interrupt() && rig.card.cycle() - before < 1000) rig.card.run(1);
  const auto cycles = static_cast<int>(rig.card.cycle() - before) - 200;
  printf("NOP: %d cycles beside a read and a write\n", cycles);
  EXPECT_LE(cycles, 60);
  EXPECT_EQ(q.poll(), "");
  EXPECT_EQ(q.polled(), 1u);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_IRQ_CAUSE_HI), 0x80000000u);
  rig.write(PENSTOCK_REGISTER_IRQ_CAUSE_HI, 0x80000000);
  EXPECT_FALSE(rig.card.interrupt());
  EXPECT_EQ(rig.read64(PENSTOCK_REGISTER_DESCRIPTORS_LO), 1u);
  EXPECT_EQ(rig.read64(PENSTOCK_REGISTER_COMPLETIONS_LO), 1u);
  EXPECT_EQ(rig.read64(PENSTOCK_REGISTER_CTL_READ_BEATS_LO), 2u);
  EXPECT_EQ(rig.read64(PENSTOCK_REGISTER_CTL_WRITE_BEATS_LO), 1u);
}

TEST_F(Card, LengthsAndAlignments) {
  CardRig& rig = start(2);
  CardQueue& q = queue(0, 5);
  for (const std::uint64_t bytes : {0u, 1u, 2u, 63u, 64u, 65u, 127u, 4095u, 4096u, 4097u, 9001u}) {
    for (int i = 0; i < 4; ++i) {
      penstock_descriptor d = make_copy(kPool + 0x40000 + rig.random.below(0x2000),
                                        kPool + rig.random.below(0x2000), bytes);
      if (i % 2 != 0) {
        d.opcode = PENSTOCK_OP_REDUCE;
        d.n_src = 3;
        d.n_dst = 2;
        d.type = d.out_type = i % 4 == 1 ? PENSTOCK_F32 : PENSTOCK_UINT8;
        d.count = bytes / penstock_type_size(d.type) + (bytes != 0 ? 1 : 0);
        d.src[1] = kPool + 0x10000 + rig.random.below(0x2000);
        d.src[2] = kPool + 0x20000 + rig.random.below(0x2000);
        d.dst[1] = kPool + 0x60000 + rig.random.below(0x2000);
      }
      rig.perform(d, {d.src, d.src + d.n_src});
      q.submit(d, {});
    }
    run(200000);
  }
  // The longest and one more; the longest is in no window.
  penstock_descriptor d = make_copy(kPool + 0x40000, kPool, std::uint64_t{1} << 32);
  q.submit(d, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, d.dst[0]});
  d.count += 1;
  q.submit(d, {PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_COUNT, d.count});
  // 64 KiB, and 64 sources.
  d = make_copy(kPool + 0x80003, kPool + 5, 0x10000);
  rig.perform(d, {d.src[0]});
  q.submit(d, {});
  d = make(PENSTOCK_OP_REDUCE, 64, 1);
  d.type = d.out_type = PENSTOCK_INT32;
  d.count = 300;
  d.flags = PENSTOCK_FLAG_SRC_LIST;
  d.src[0] = kPool + 0xf0e08;  // over a page's end
  d.dst[0] = kPool + 0xe0000;
  std::vector<std::uint64_t> sources;
  for (std::uint32_t i = 0; i < 64; ++i) {
    sources.push_back(kPool + i * 1001);
    rig.put(d.src[0] + 8 * i, sources.back());
  }
  rig.perform(d, sources);
  q.submit(d, {});
  run(500000);
}

TEST_F(Card, SixtyFourQueuesOfEverything) {
  CardRig& rig = start(3);
  for (std::uint32_t n = 0; n < 64; ++n) queue(n, 2 + n % 3);
  const std::uint64_t fences = kPool, no_table = kPool + 0xfff00;
  const auto* header = reinterpret_cast<const penstock_node_table*>(rig.at(no_table));
  const std::uint32_t refusal = penstock_node_table_check(header, header->bytes);
  ASSERT_NE(refusal, static_cast<std::uint32_t>(PENSTOCK_OK));
  std::uint64_t value[64] = {};
  for (std::uint32_t n = 0; n < 64; ++n) rig.put(fences + 64 * n, 0);
  for (int round = 0; round < 3; ++round) {
    std::uint32_t n = 0;
    for (CardQueue& q : queues_) {
      const std::uint64_t area = kPool + 0x1000 + 0x3f00 * n;  // overlaps nobody's
      for (int i = 0; i < 4; ++i) {
        switch (rig.random.below(7)) {
          case 0:
            q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
            break;
          case 1:
            q.submit(make_fence(PENSTOCK_OP_SIGNAL, fences + 64 * n, ++value[n]), {});
            std::memcpy(rig.shadow_at(fences + 64 * n), &value[n], sizeof value[n]);
            break;
          case 2:
            q.submit(make_fence(PENSTOCK_OP_WAIT, fences + 64 * (n / 2), 0), {0, 0, 0, true});
            break;
          case 3: {
            penstock_descriptor d = make(PENSTOCK_OP_SELECT, 3, 1);
            d.src[0] = no_table;
            d.src[1] = kPool;
            d.src[2] = kPool;
            d.dst[0] = kPool + 0x1000;
            q.submit(d, {refusal, PENSTOCK_FIELD_TABLE, d.src[0]});
            break;
          }
          case 4: {
            penstock_descriptor d = make_copy(area, kPool + CardRig::kBytes, 1);
            q.submit(d, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, d.src[0]});
            break;
          }
          default:
            submit_move(q, area, 900);
        }
      }
      ++n;
    }
    run(2000000);
  }
  rig.card.run(100);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_STATUS), 2u);
  EXPECT_EQ(rig.read64(PENSTOCK_REGISTER_DESCRIPTORS_LO), 64u * 12);
  EXPECT_EQ(rig.read64(PENSTOCK_REGISTER_COMPLETIONS_LO), 64u * 12);
}

// Each copies what the one before it wrote.
TEST_F(Card, AChainOfCopiesSeesItself) {
  CardRig& rig = start(4);
  CardQueue& q = queue(7, 5);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < 32; ++i) {
      const std::uint64_t from = kPool + 0x1000 * i + (i * 7 + round) % 64;
      const std::uint64_t to = kPool + 0x1000 * (i + 1) + ((i + 1) * 7 + round) % 64;
      const penstock_descriptor d = make_copy(to, from, 500 + 100 * round);
      rig.perform(d, {from});
      q.submit(d, {});
    }
    run(500000);
  }
}

TEST_F(Card, FullRingsAndDoorbellsOutOfRange) {
  CardRig& rig = start(5);
  CardQueue& q = queue(20, 5);
  for (int round = 0; round < 5; ++round) {
    while (!q.full()) q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
    run(100000);
  }
  CardQueue& other = queue(21);
  rig.write(PENSTOCK_REGISTER_IRQ_ERROR_MASK, 1);
  for (const std::uint32_t wrong : {q.submitted() - 1, q.submitted() + 33}) {
    rig.write(q.reg(PENSTOCK_REGISTER_QUEUE_TAIL), wrong);
    EXPECT_EQ(rig.read(q.reg(PENSTOCK_REGISTER_QUEUE_STATE)), 0x307u);
    EXPECT_TRUE(rig.card.interrupt());
    EXPECT_EQ(rig.read(PENSTOCK_REGISTER_ERROR_CODE), 20u << 8 | PENSTOCK_CARD_ERROR_DOORBELL);
    EXPECT_EQ(rig.read64(PENSTOCK_REGISTER_ERROR_ADDRESS_LO), wrong);
    rig.write(PENSTOCK_REGISTER_IRQ_ERROR, 1);
    EXPECT_FALSE(rig.card.interrupt());
    rig.write(q.reg(PENSTOCK_REGISTER_QUEUE_CONTROL), 0);
    q.set_up();
    while (!q.full()) q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
    other.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
    run(100000);
  }
}

TEST_F(Card, BusErrorsAreReportedAndTheRestGoesOn) {
  CardRig& rig = start(6);
  CardQueue& q = queue(2, 5);
  CardQueue& other = queue(3, 5);
  constexpr std::uint64_t kBad = kPool + 0x10000;
  rig.card.memory().fail(CardRig::bus_of(kBad), 64, true, true);
  const penstock_descriptor good = make_copy(kPool + 0x40, kPool + 0x2007, 3000);
  penstock_descriptor bad = good;
  bad.src[0] = kBad - 5000;
  bad.count = 6000;
  bad.dst[0] = kPool + 0x20000;
  const std::uint64_t errors[] = {CardRig::bus_of(kBad)};
  for (int i = 0; i < 3; ++i) {
    rig.perform(good, {good.src[0]});
    q.submit(good, {});
    other.submit(good, {});
    // The burst that holds the bad line: its address is not after it, and less than 4 KiB before.
    q.submit(bad, {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, 0, true});
  }
  penstock_descriptor write = good;
  write.dst[0] = kBad + 10;
  write.count = 20;
  q.submit(write, {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_DST, errors[0] + 10});  // of its first byte
  q.submit(make_fence(PENSTOCK_OP_SIGNAL, kBad, 1),
           {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_DST, errors[0]});
  q.submit(make_fence(PENSTOCK_OP_WAIT, kBad, 1),
           {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, errors[0]});
  q.submit(good, {});
  for (CardQueue& each : queues_) each.doorbell();
  ASSERT_EQ(drain(rig, queues_, 500000), "");
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_ERROR_CODE), 2u << 8 | PENSTOCK_CARD_ERROR_OPERAND);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_ERROR_SEQUENCE), 2u);
  const std::uint64_t address = rig.read64(PENSTOCK_REGISTER_ERROR_ADDRESS_LO);
  EXPECT_LE(address, errors[0]);
  EXPECT_GT(address + 4096, errors[0]);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_ERROR_DESCRIPTOR), 0x00000101u);
  EXPECT_EQ(rig.read64(PENSTOCK_REGISTER_ERROR_DESCRIPTOR + 24), 6000u);
  EXPECT_EQ(rig.read64(PENSTOCK_REGISTER_ERROR_DESCRIPTOR + 64), bad.src[0]);
  // Of the failed copies only their own destinations have changed.
  std::memcpy(rig.shadow_at(bad.dst[0]), rig.at(bad.dst[0]), bad.count);
  EXPECT_EQ(rig.difference(), -1);

  // A record that cannot be read stops its queue alone.
  rig.write(PENSTOCK_REGISTER_IRQ_ERROR, 1);
  rig.card.memory().fail(q.record_bus(q.submitted()), 64, true, false);
  q.submit(good, {});
  q.doorbell();
  for (int i = 0; i < 4; ++i) other.submit(good, {});
  other.doorbell();
  rig.card.run(10000);
  EXPECT_EQ(other.poll(), "");
  EXPECT_EQ(other.polled(), other.submitted());
  EXPECT_EQ(rig.read(q.reg(PENSTOCK_REGISTER_QUEUE_STATE)), 0x107u);
  EXPECT_EQ(rig.read(PENSTOCK_REGISTER_ERROR_CODE), 2u << 8 | PENSTOCK_CARD_ERROR_FETCH);
}

TEST_F(Card, BarrierOfEightQueues) {
  CardRig& rig = start(8);
  for (std::uint32_t n = 0; n < 8; ++n) {
    queue(n);
    rig.put(kPool + 64 * n, 0);
  }
  for (std::uint64_t round = 1; round <= 2; ++round) {
    std::uint32_t n = 0;
    for (CardQueue& q : queues_) {
      // Each writes its piece; after the barrier each reads its neighbour's.
      const std::uint64_t piece = kPool + 0x4000 * (n + 1);
      const std::uint64_t next = kPool + 0x4000 * ((n + 1) % 8 + 1);
      q.submit(make_copy(piece + 0x1001, piece, 700), {});
      penstock_descriptor d = make_fence(PENSTOCK_OP_BARRIER, kPool + 64 * n, 2 * round);
      d.src[0] = kPool;
      d.count = 8;
      q.submit(d, {});
      q.submit(make_copy(piece + 0x2003, next + 0x1001, 700), {});
      d.src[1] = 2 * round + 1;
      q.submit(d, {});
      ++n;
    }
    for (n = 0; n < 8; ++n) {
      const std::uint64_t piece = kPool + 0x4000 * (n + 1);
      rig.perform(make_copy(piece + 0x1001, piece, 700), {piece});
    }
    for (n = 0; n < 8; ++n) {
      const std::uint64_t next = kPool + 0x4000 * ((n + 1) % 8 + 1) + 0x1001;
      rig.perform(make_copy(kPool + 0x4000 * (n + 1) + 0x2003, next, 700), {next});
      const std::uint64_t value = 2 * round + 1;
      std::memcpy(rig.shadow_at(kPool + 64 * n), &value, sizeof value);
    }
    run(500000);
  }
}

TEST_F(Card, SoftResetInTrafficLeavesTheBusClean) {
  CardRig& rig = start(9);
  for (int round = 0; round < 5; ++round) {
    queues_.clear();
    rig.write(PENSTOCK_REGISTER_CONTROL, 1);
    for (std::uint32_t n = 0; n < 6; ++n) {
      CardQueue& q = queue(n * 11);
      const std::uint64_t area = kPool + 0x8000 * n;
      while (!q.full()) {
        if (rig.random.chance(4)) {
          q.submit(make_fence(PENSTOCK_OP_WAIT, kPool + 0x80000, ~std::uint64_t{0}), {});
        } else {
          q.submit(make_copy(area + 0x4000, area + rig.random.below(64), 5000), {});
        }
      }
      q.doorbell();
    }
    rig.card.run(rig.random.below(3000));
    rig.write(PENSTOCK_REGISTER_CONTROL, 2);
    int limit = 20000;
    while ((rig.read(PENSTOCK_REGISTER_STATUS) & 1) != 0 && limit > 0) --limit;
    ASSERT_GT(limit, 0) << "the soft reset hangs";
    // Nothing comes any more: no completion, no byte.
    const std::uint64_t written = rig.card.data_counts().write_beats;
    const std::uint64_t controls = rig.card.control_counts().write_beats;
    rig.card.run(1000);
    EXPECT_EQ(rig.card.data_counts().write_beats, written);
    EXPECT_EQ(rig.card.control_counts().write_beats, controls);
    EXPECT_EQ(rig.read(queue_register(0, PENSTOCK_REGISTER_QUEUE_STATE)), 2u);
    EXPECT_EQ(rig.read64(queue_register(0, PENSTOCK_REGISTER_QUEUE_RING_LO)), 0u);
    EXPECT_EQ(rig.read(PENSTOCK_REGISTER_CONTROL), 0u);
    // And then it works.
    rig.forget_differences();
    queues_.clear();
    rig.write(PENSTOCK_REGISTER_CONTROL, 1);
    CardQueue& q = queue(5);
    for (int i = 0; i < 4; ++i) submit_move(q, kPool + 0x80000, 900);
    run(100000);
    queues_.clear();
    // A completion is there before memory has confirmed it; only then the queue may be disabled.
    limit = 20000;
    while ((rig.read(queue_register(5, PENSTOCK_REGISTER_QUEUE_STATE)) & 2) == 0 && limit > 0)
      --limit;
    ASSERT_GT(limit, 0) << "the queue does not fall idle";
    rig.write(queue_register(5, PENSTOCK_REGISTER_QUEUE_CONTROL), 0);
  }
}

}  // namespace
}  // namespace penstock::rtl
