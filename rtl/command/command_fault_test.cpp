// The command processor where something is wrong: windows, overlaps, bus errors, cancel, resets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/rtl/command/command_test_fixture.h"

namespace penstock::rtl {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kDataBus = CommandRig::kBus + CommandRig::kData;

TEST_F(Command, WindowsAreKeptToTheByte) {
  CommandRig& rig = start(21);
  CommandQueue& q = queue(12, 5);
  constexpr std::uint64_t kPage = 0x1000;
  constexpr std::uint64_t kTop = 0x0fff'ffff'ffff'f000;  // the last page of the last device
  // Windows of a page each: 0 to read, 1 to write, 2 and 3 the same place (the first one counts),
  // 15 all rights.
  rig.set_window(12, 0, kPool, kPage, kDataBus, 1);
  rig.set_window(12, 1, kPool + kPage, kPage, kDataBus + kPage, 2);
  rig.set_window(12, 2, kPool + 2 * kPage, kPage, kDataBus + 2 * kPage, 3);
  rig.set_window(12, 3, kPool + 2 * kPage, kPage, kDataBus + 3 * kPage, 3);
  for (std::uint32_t w = 4; w < 15; ++w)
    rig.set_window(12, w, kPool + (16 + w) * kPage, kPage, kDataBus + (16 + w) * kPage, 0);
  rig.set_window(12, 14, kTop, kPage, kDataBus + 40 * kPage, 3);
  rig.set_window(12, 15, kPool + 48 * kPage, kPage, kDataBus + 48 * kPage, 3);
  q.write(reg::kWindows, 16);

  const std::uint64_t good = kPool + 48 * kPage;
  struct Case {
    const char* what;
    std::uint64_t dst, src, bytes;
    std::uint32_t field;  // 0: taken
  };
  const Case cases[] = {
      {"whole windows", good, kPool, kPage, 0},
      {"last bytes", good + kPage - 7, kPool + kPage - 7, 7, 0},
      {"a byte behind the source's", good, kPool + kPage - 6, 7, 14},
      {"a byte before the source's", good, kPool - 1, 7, 14},
      {"a byte behind the destination's", good + kPage - 6, kPool, 7, 13},
      {"over two windows", good, kPool + kPage - 1, 2, 14},
      {"no right to read", good, kPool + kPage, 1, 14},
      {"no right to write", kPool + 8, kPool, 1, 13},
      {"to write only", kPool + kPage, kPool, kPage, 0},
      {"a window without rights", good, kPool + 20 * kPage, 1, 14},
      {"both are wrong", kPool, kPool + kPage, 1, 13},
      {"the top of the addresses", kTop + kPage - 64, kPool, 64, 0},
      {"beyond the top", kTop + kPage - 63, kPool, 64, 13},
      {"more than any window", good, kPool, std::uint64_t{1} << 32, 13},
      {"in no window", good, 0x77 * kPage, 1, 14},
      {"the first of two", good + 64, kPool + 2 * kPage, 256, 0},
  };
  std::vector<std::uint8_t> before(64 * kPage);
  for (std::uint8_t& byte : before) byte = static_cast<std::uint8_t>(rig.dut.random());
  std::memcpy(rig.at(kDataBus), before.data(), before.size());
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    std::vector<std::uint8_t> expected(before.size());
    std::memcpy(expected.data(), rig.at(kDataBus), expected.size());
    CommandQueue::Expected e;
    if (c.field != 0)
      e = {PENSTOCK_OUT_OF_RANGE, c.field, c.field == PENSTOCK_FIELD_DST ? c.dst : c.src};
    q.submit(make_copy(c.dst, c.src, c.bytes), e);
    q.doorbell();
    run(20000);
    if (c.field == 0) {
      const std::uint64_t to = c.dst >= kTop ? c.dst - kTop + 40 * kPage : c.dst - kPool;
      std::memmove(expected.data() + to, expected.data() + (c.src - kPool), c.bytes);
    }
    EXPECT_EQ(std::memcmp(expected.data(), rig.at(kDataBus), expected.size()), 0);
  }
  // A window that is not in use is none.
  q.write(reg::kWindows, 15);
  q.submit(make_copy(good, kPool, 1), {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, good});
  q.write(reg::kWindows, 0);
  q.doorbell();
  run(20000);
}

TEST_F(Command, OverlapsAreRefused) {
  start(22);
  CommandQueue& q = queue(1, 5);
  struct Case {
    std::uint64_t dst[3];
    std::uint64_t src;
    int bad;  // the destination at fault, -1: none
  };
  // 64 bytes each.
  const Case cases[] = {{{0x100, 0, 0}, 0x100, -1},        {{0x100, 0, 0}, 0x101, 0},
                        {{0x101, 0, 0}, 0x100, 0},         {{0x100, 0, 0}, 0x140, -1},
                        {{0x140, 0, 0}, 0x100, -1},        {{0x13f, 0, 0}, 0x100, 0},
                        {{0x200, 0x220, 0}, 0x100, 1},     {{0x200, 0x240, 0x27f}, 0x100, 2},
                        {{0x200, 0x120, 0x210}, 0x100, 1}, {{0x200, 0x240, 0x280}, 0x100, -1},
                        {{0x200, 0x100, 0x300}, 0x100, -1}};
  for (const Case& c : cases) {
    penstock_descriptor d = make_copy(0, kPool + c.src, 64);
    d.n_dst = c.dst[2] != 0 ? 3 : c.dst[1] != 0 ? 2 : 1;
    for (std::uint32_t i = 0; i < d.n_dst; ++i) d.dst[i] = kPool + c.dst[i];
    CommandQueue::Expected e;
    if (c.bad >= 0) e = {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[c.bad]};
    q.submit(d, e);
    // So does a REDUCE whose results are as wide as its sources.
    d.opcode = PENSTOCK_OP_REDUCE;
    d.type = d.out_type = PENSTOCK_UINT8;
    q.submit(d, e);
    q.doorbell();
    run(20000);
  }
  // Results of another width are never in place; the last of several sources counts, too.
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE, 3, 1);
  d.type = PENSTOCK_F32;
  d.out_type = PENSTOCK_F16;
  d.count = 16;
  d.src[0] = kPool;
  d.src[1] = kPool + 0x400;
  d.src[2] = d.dst[0] = kPool + 0x800;
  q.submit(d, {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[0]});
  d.dst[0] = kPool + 0x83f;  // the last byte of 64
  q.submit(d, {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[0]});
  d.dst[0] = kPool + 0x800 - 31;  // 32 bytes, of which the last is the source's first
  q.submit(d, {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[0]});
  // A source outside of the windows comes first; and with nothing to move nobody looks.
  d.src[2] = 0x10;
  q.submit(d, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, 0x10});
  d.count = 0;
  q.submit(d, {});
  q.doorbell();
  run(20000);
}

TEST_F(Command, ListsLieAnywhere) {
  CommandRig& rig = start(23);
  CommandQueue& q = queue(2, 5);
  for (const std::uint32_t n : {9u, 10u, 16u, 17u, 63u, 64u}) {
    for (const std::uint64_t before : {8u, 24u, 64u, 72u, 128u, 512u, 0u}) {
      const std::uint64_t list = kPool + 0x9000 - before;  // to a page's end
      std::uint8_t sum = 0;
      for (std::uint32_t i = 0; i < n; ++i) {
        const auto value = static_cast<std::uint8_t>(rig.dut.random());
        const std::uint64_t src = kPool + 0x100 + i;
        *rig.at(CommandRig::bus_of(src)) = static_cast<std::byte>(value);
        rig.word(CommandRig::bus_of(list) + 8 * i) = src;
        sum = static_cast<std::uint8_t>(sum + value);
      }
      penstock_descriptor d = make(PENSTOCK_OP_REDUCE, static_cast<std::uint8_t>(n), 1);
      d.type = d.out_type = PENSTOCK_UINT8;
      d.flags = PENSTOCK_FLAG_SRC_LIST;
      d.count = 1;
      d.src[0] = list;
      d.dst[0] = kPool + 0x4000;
      q.submit(d, {});
      q.doorbell();
      run(20000);
      EXPECT_EQ(*rig.at(CommandRig::bus_of(d.dst[0])), static_cast<std::byte>(sum)) << n;
      // What a job of the queue writes into the list is seen.
      const std::uint64_t spare = kPool + 0x5000;
      rig.word(CommandRig::bus_of(spare)) = 0x33;  // in no window
      q.submit(make_copy(list + 8 * (n - 1), spare, 8), {});
      q.submit(d, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, 0x33});
      q.doorbell();
      run(20000);
    }
  }
  // A bus error in the first and in the second burst, and a list outside of the windows.
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE, 20, 1);
  d.type = d.out_type = PENSTOCK_UINT8;
  d.flags = PENSTOCK_FLAG_SRC_LIST;
  d.count = 1;
  d.dst[0] = kPool + 0x4000;
  d.src[0] = kPool + 0x9000 - 72;
  for (const std::uint64_t line : {0x9000u - 128u, 0x9000u}) {
    rig.memory.fail(kDataBus + line, 64, true, false);
    q.submit(d, {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, kDataBus + line});
    q.doorbell();
    run(20000);
    ASSERT_FALSE(rig.reports.empty());
    EXPECT_EQ(rig.reports.back().code, 4u);
    EXPECT_EQ(rig.reports.back().address, kDataBus + line);
    EXPECT_EQ(rig.reports.back().descriptor.src[0], d.src[0]);
    rig.memory.clear_failures();
  }
  d.src[0] = kPool + kSize - 19 * 8;
  q.submit(d, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, d.src[0]});
  q.doorbell();
  run(20000);
}

TEST_F(Command, CancelEndsWhatHasNotBegun) {
  CommandRig& rig = start(24);
  CommandQueue& q = queue(33);
  CommandQueue& other = queue(34);
  const std::uint64_t fence = kPool;
  rig.word(CommandRig::bus_of(fence)) = 5;
  q.submit(make_wait(fence, 6, 0x7fffffff), {PENSTOCK_CANCELLED, 0, 0});
  q.submit(make(PENSTOCK_OP_NOP, 0, 0), {PENSTOCK_CANCELLED, 0, 0});
  q.submit(make_copy(kPool + 0x1000, kPool + 0x2000, 64), {PENSTOCK_CANCELLED, 0, 0});
  q.submit(make_signal(fence, 9), {PENSTOCK_CANCELLED, 0, 0});
  penstock_descriptor bad = make(0x44, 1, 2);
  q.submit(bad, {PENSTOCK_CANCELLED, 0, 0});
  q.doorbell();
  for (int i = 0; i < 2000; ++i) rig.tick();
  EXPECT_EQ(q.read(reg::kState), 0x9u);  // enabled, waiting
  EXPECT_EQ(q.read(reg::kCompleted), kStart);
  EXPECT_FALSE(q.write(reg::kControl, 3));
  run(20000);
  EXPECT_EQ(q.read(reg::kState), 0x3u);
  // It stays until it is cleared, for this queue alone.
  q.submit(make(PENSTOCK_OP_NOP, 0, 0), {PENSTOCK_CANCELLED, 0, 0});
  other.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
  q.doorbell();
  other.doorbell();
  run(20000);
  EXPECT_FALSE(q.write(reg::kControl, 1));
  // A job that has begun ends as it would.
  rig.hold_jobs = true;
  q.submit(make_copy(kPool + 0x1000, kPool + 0x2000, 64), {});
  q.submit(make(PENSTOCK_OP_NOP, 0, 0), {PENSTOCK_CANCELLED, 0, 0});
  q.doorbell();
  for (int i = 0; i < 2000; ++i) rig.tick();
  EXPECT_FALSE(q.write(reg::kControl, 3));
  for (int i = 0; i < 2000; ++i) rig.tick();
  EXPECT_EQ(q.poll(), "");
  EXPECT_EQ(q.polled() + 2, q.submitted());
  rig.hold_jobs = false;
  run(20000);
  EXPECT_EQ(rig.word(CommandRig::bus_of(fence)), 5u);
  EXPECT_THAT(rig.reports, IsEmpty());
}

TEST_F(Command, WaitsEndAtTheirDeadlineOrTheQueues) {
  CommandRig& rig = start(25);
  CommandQueue& q = queue(6);
  rig.word(CommandRig::bus_of(kPool + 64)) = 5;
  for (const std::uint32_t timeout_ms : {3u, 0u}) {  // 0: the queue's 50
    const std::uint64_t before = rig.dut.cycles();
    q.submit(make_wait(kPool + 64, 6, timeout_ms), {PENSTOCK_DEADLINE_EXCEEDED, 0, 5});
    q.doorbell();
    run(100000);
    const std::uint64_t least = (timeout_ms != 0 ? timeout_ms : 50) * rig.sync_cycles_per_ms;
    EXPECT_GE(rig.dut.cycles() - before, least);
    EXPECT_LE(rig.dut.cycles() - before, least + 6000);
  }
  penstock_descriptor d = make(PENSTOCK_OP_BARRIER, 2, 1);
  d.count = 5;
  d.dst[0] = d.src[0] = kPool + 0x1000;
  d.src[1] = 3;
  d.timeout_ms = 2;
  for (const std::uint64_t i : {1u, 2u, 4u}) rig.word(CommandRig::bus_of(d.src[0]) + 64 * i) = 4;
  q.submit(d, {PENSTOCK_DEADLINE_EXCEEDED, 0, 3});
  rig.word(CommandRig::bus_of(d.src[0])) = 0;
  q.doorbell();
  run(20000);
  EXPECT_EQ(rig.word(CommandRig::bus_of(d.src[0])), 3u);  // its own
  rig.word(CommandRig::bus_of(d.src[0]) + 64 * 3) = 3;
  q.submit(d, {});
  // Windows: first the own fence, then all that are waited for.
  penstock_descriptor out = d;
  out.dst[0] = 0x40;
  q.submit(out, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, 0x40});
  out = d;
  out.src[0] = kPool + kSize - 64 * 4;
  q.submit(out, {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, out.src[0]});
  q.doorbell();
  run(20000);
}

TEST_F(Command, FetchErrorsStopTheirQueue) {
  for (const std::uint64_t half : {0u, 64u}) {
    queues_.clear();
    CommandRig& rig = start(26 + half);
    CommandQueue& q = queue(8);
    CommandQueue& other = queue(9);
    rig.memory.fail(q.record_bus(2) + half, 64, true, false);
    q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
    q.submit(make_copy(kPool, kPool + 64, 64), {});
    q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
    const std::uint64_t bad = q.record_bus(2);
    q.doorbell();
    while (other.submitted() < 12) other.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
    other.doorbell();
    for (int i = 0; i < 6000; ++i) rig.tick();
    EXPECT_EQ(other.poll(), "");
    EXPECT_EQ(other.polled(), 12u);
    ASSERT_THAT(rig.reports, SizeIs(1));
    EXPECT_EQ(rig.reports[0].code, 1u);
    EXPECT_EQ(rig.reports[0].queue, 8u);
    EXPECT_EQ(rig.reports[0].sequence, kStart + 3);
    EXPECT_EQ(rig.reports[0].address, bad);
    penstock_completion c;
    std::memcpy(&c, rig.at(q.completion_bus(2)), sizeof c);
    EXPECT_EQ(c.status, static_cast<std::uint32_t>(PENSTOCK_IO_ERROR));
    EXPECT_EQ(c.field, 0u);
    EXPECT_EQ(c.detail, bad);
    EXPECT_EQ(c.cookie, 0u);
    EXPECT_EQ(c.sequence, std::uint64_t{kStart} + 3);
    EXPECT_EQ(q.read(reg::kState), 0x107u);
    EXPECT_EQ(q.read(reg::kCompleted), kStart + 3);
    EXPECT_TRUE(rig.dut->idle_o);
    // It starts anew.
    rig.memory.clear_failures();
    EXPECT_FALSE(q.write(reg::kControl, 0));
    q.enable();
    q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
    q.doorbell();
    run(20000);
  }
}

TEST_F(Command, CompletionsThatCannotBeWrittenStopTheirQueue) {
  CommandRig& rig = start(27);
  CommandQueue& q = queue(10);
  // Two completions share a line: 4 and 5.
  rig.memory.fail(q.completion_bus(4) & ~std::uint64_t{63}, 64, false, true);
  for (int i = 0; i < 8; ++i) q.submit(make_copy(kPool, kPool + 64, 64), {});
  const std::uint64_t bad = q.completion_bus(4);
  q.doorbell();
  for (int i = 0; i < 6000; ++i) rig.tick();
  EXPECT_EQ(q.poll(), "");
  EXPECT_EQ(q.polled(), 4u);
  ASSERT_FALSE(rig.reports.empty());
  EXPECT_EQ(rig.reports[0].code, 2u);
  EXPECT_EQ(rig.reports[0].sequence, kStart + 5);
  EXPECT_EQ(rig.reports[0].address, bad);
  EXPECT_EQ(rig.reports[0].descriptor.opcode, static_cast<std::uint8_t>(PENSTOCK_OP_COPY));
  EXPECT_EQ(rig.reports[0].descriptor.cookie & 0xffff, 4u);
  EXPECT_EQ(q.read(reg::kCompleted), kStart + 4);
  EXPECT_EQ(q.read(reg::kState), 0x207u);
  EXPECT_THAT(rig.events, SizeIs(4));
  EXPECT_TRUE(rig.dut->idle_o);
}

TEST_F(Command, OperandErrorsAreTheirDescriptors) {
  CommandRig& rig = start(28);
  CommandQueue& q = queue(11);
  const std::uint64_t bad = CommandRig::bus_of(kPool + 0x800);
  rig.failing[bad] = true;
  q.submit(make_copy(kPool, kPool + 0x100, 64), {});
  q.submit(make_copy(kPool + 0x800, kPool + 0x100, 64),
           {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_DST, bad});
  q.submit(make_copy(kPool, kPool + 0x800, 64), {PENSTOCK_IO_ERROR, PENSTOCK_FIELD_SRC, bad});
  q.submit(make_copy(kPool, kPool + 0x100, 64), {});
  q.doorbell();
  run(20000);
  ASSERT_THAT(rig.reports, SizeIs(2));
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rig.reports[i].code, 4u);
    EXPECT_EQ(rig.reports[i].queue, 11u);
    EXPECT_EQ(rig.reports[i].sequence, kStart + 2 + i);
    EXPECT_EQ(rig.reports[i].address, bad);
    EXPECT_EQ(rig.reports[i].descriptor.cookie & 0xffff, 1 + i);
    EXPECT_EQ(rig.reports[i].descriptor.count, 64u);
  }
  EXPECT_EQ(q.read(reg::kState), 3u);
}

TEST_F(Command, ResetInTrafficLeavesNothing) {
  CommandRig& rig = start(29);
  std::uint64_t begun = 0;
  for (int round = 0; round < 20; ++round) {
    queues_.clear();
    for (std::uint32_t n = 0; n < 8; ++n) {
      CommandQueue& q = queue(n * 9, 4);
      while (!q.full()) {
        const std::uint64_t where = kPool + 0x2000 * n;
        switch (rig.dut.random() % 4) {
          case 0:
            q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
            break;
          case 1:
            q.submit(make_signal(where, 1), {});
            break;
          case 2:
            q.submit(make_wait(where, 0, 5), {0, 0, 0, true});
            break;
          default:
            q.submit(make_copy(where + 0x1000, where + 0x100, 200), {});
        }
      }
      q.doorbell();
    }
    if (round % 2 == 0) {
      for (std::uint64_t i = rig.dut.random() % 1500; i > 0; --i) rig.tick();
    } else {
      run(100000);
    }
    begun = rig.begun;
    rig.reset();
    EXPECT_EQ(rig.read(reg::queue(9, reg::kState)), 2u);
    EXPECT_EQ(rig.read(reg::queue(9, reg::kRing)), 0u);
    for (int i = 0; i < 300; ++i) rig.tick();
    EXPECT_EQ(rig.begun, begun);
    EXPECT_TRUE(rig.dut->idle_o);
  }
  EXPECT_GT(begun, 1000u);
}

TEST_F(Command, ASwitchedOffCardBeginsNothing) {
  CommandRig& rig = start(30);
  CommandQueue& q = queue(3);
  rig.dut->enable_i = 0;
  q.submit(make(PENSTOCK_OP_NOP, 0, 0), {});
  q.doorbell();
  for (int i = 0; i < 500; ++i) rig.tick();
  EXPECT_EQ(rig.begun, 0u);
  EXPECT_EQ(q.read(reg::kHead), kStart);
  rig.dut->enable_i = 1;
  run(10000);
}

}  // namespace
}  // namespace penstock::rtl
