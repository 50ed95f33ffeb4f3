// The small blocks against queues and counters of C++, under back-pressure that changes by seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>

#include "Vcommon_harness.h"
#include "penstock/rtl/common/clocked_test.h"

namespace penstock::rtl {
namespace {

using Harness = Clocked<Vcommon_harness>;

constexpr std::uint64_t kWord = (std::uint64_t{1} << 40) - 1;

// All inputs at rest, after reset.
void start(Harness& harness) {
  harness->fifo_in_valid_i = 0;
  harness->fifo_out_ready_i = 0;
  harness->stream_in_valid_i = 0;
  harness->stream_out_ready_i = 0;
  harness->arbiter_request_i = 0;
  harness->arbiter_ready_i = 0;
  harness->credit_take_i = 0;
  harness->credit_give_i = 0;
  harness.reset();
}

TEST(Fifo, GivesWordsInTheirOrderAndCountsThem) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Harness harness(seed);
    start(harness);
    std::deque<std::uint64_t> expected;
    unsigned moved = 0;
    unsigned full = 0;
    const unsigned in_percent = 10 + 10 * (seed % 10);
    const unsigned out_percent = 100 - 7 * (seed % 13);
    for (int cycle = 0; cycle < 2000; ++cycle) {
      const std::uint64_t word = harness.random() & kWord;
      harness->fifo_in_valid_i = harness.chance(in_percent);
      harness->fifo_in_data_i = word;
      harness->fifo_out_ready_i = harness.chance(out_percent);
      harness.eval();
      ASSERT_EQ(harness->fifo_count_o, expected.size());
      ASSERT_EQ(harness->fifo_in_ready_o, expected.size() < 3);
      ASSERT_EQ(harness->fifo_out_valid_o, !expected.empty());
      full += expected.size() == 3;
      const bool push = harness->fifo_in_valid_i && harness->fifo_in_ready_o;
      if (harness->fifo_out_valid_o && harness->fifo_out_ready_i) {
        ASSERT_EQ(harness->fifo_out_data_o, expected.front());
        expected.pop_front();
        ++moved;
      }
      if (push) expected.push_back(word);
      harness.tick();
    }
    EXPECT_GT(moved, 100U) << "seed " << seed;
    EXPECT_TRUE(full > 0 || seed % 10 != 9) << "seed " << seed;
  }
}

TEST(StreamRegister, KeepsEveryWordAndItsOrder) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Harness harness(seed);
    start(harness);
    std::deque<std::uint64_t> expected;
    unsigned moved = 0;
    for (int cycle = 0; cycle < 2000; ++cycle) {
      const std::uint64_t word = harness.random() & kWord;
      harness->stream_in_valid_i = harness.chance(10 + 10 * (seed % 10));
      harness->stream_in_data_i = word;
      harness->stream_out_ready_i = harness.chance(100 - 7 * (seed % 13));
      harness.eval();
      ASSERT_EQ(harness->stream_in_ready_o, expected.size() < 2);
      ASSERT_EQ(harness->stream_out_valid_o, !expected.empty());
      if (harness->stream_out_valid_o && harness->stream_out_ready_i) {
        ASSERT_EQ(harness->stream_out_data_o, expected.front());
        expected.pop_front();
        ++moved;
      }
      if (harness->stream_in_valid_i && harness->stream_in_ready_o) expected.push_back(word);
      harness.tick();
    }
    EXPECT_GT(moved, 100U) << "seed " << seed;
  }
}

TEST(StreamRegister, MovesOneWordInEveryCycle) {
  Harness harness(1);
  start(harness);
  harness->stream_in_valid_i = 1;
  harness->stream_out_ready_i = 1;
  unsigned moved = 0;
  for (unsigned cycle = 0; cycle < 100; ++cycle) {
    harness->stream_in_data_i = cycle;
    harness.eval();
    ASSERT_TRUE(harness->stream_in_ready_o);
    if (harness->stream_out_valid_o) {
      ASSERT_EQ(harness->stream_out_data_o, cycle - 1);
      ++moved;
    }
    harness.tick();
  }
  EXPECT_EQ(moved, 99U);
}

TEST(Arbiter, GivesTurnsInACircleAndKeepsAGrantThatIsShown) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Harness harness(seed);
    start(harness);
    unsigned requests = 0;
    unsigned next = 0;  // where the search begins
    int shown = -1;
    std::array<unsigned, 5> turns{};
    std::array<unsigned, 5> waited{};
    for (int cycle = 0; cycle < 3000; ++cycle) {
      for (unsigned i = 0; i < 5; ++i) {
        if (harness.chance(5 + 5 * seed)) requests |= 1U << i;
      }
      harness->arbiter_request_i = requests;
      harness->arbiter_ready_i = harness.chance(60);
      harness.eval();
      ASSERT_EQ(harness->arbiter_valid_o, requests != 0);
      if (requests == 0) {
        ASSERT_EQ(harness->arbiter_grant_o, 0);
      } else {
        unsigned expected = next;
        while ((requests >> expected & 1U) == 0) expected = (expected + 1) % 5;
        if (shown >= 0) expected = static_cast<unsigned>(shown);
        ASSERT_EQ(harness->arbiter_index_o, expected) << "seed " << seed << " cycle " << cycle;
        ASSERT_EQ(harness->arbiter_grant_o, 1U << expected);
        shown = static_cast<int>(expected);
        if (harness->arbiter_ready_i) {
          shown = -1;
          next = (expected + 1) % 5;
          requests &= ~(1U << expected);
          ++turns[expected];
          for (unsigned i = 0; i < 5; ++i) waited[i] = requests >> i & 1U ? waited[i] + 1 : 0;
          ASSERT_LE(*std::max_element(waited.begin(), waited.end()), 4U);
        }
      }
      harness.tick();
    }
    EXPECT_THAT(turns, testing::Each(testing::Gt(50U))) << "seed " << seed;
  }
}

TEST(Credit, NeverPromisesMoreThanThereIs) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Harness harness(seed);
    start(harness);
    unsigned out = 0;
    unsigned refused = 0;
    for (int cycle = 0; cycle < 3000; ++cycle) {
      const unsigned amount = harness.random() % 32;
      const unsigned give = harness.chance(50) && out > 0 ? harness.random() % (out + 1) : 0;
      harness->credit_amount_i = amount;
      harness->credit_give_i = give;
      harness.eval();
      const bool wanted = harness.chance(50);
      harness->credit_take_i = wanted && harness->credit_enough_o;
      harness.eval();
      ASSERT_EQ(harness->credit_free_o, 20 - out);
      ASSERT_EQ(harness->credit_enough_o, amount <= 20 - out);
      if (harness->credit_take_i) out += amount;
      refused += wanted && !harness->credit_take_i;
      out -= give;
      harness.tick();
    }
    EXPECT_GT(refused, 100U);
  }
}

}  // namespace
}  // namespace penstock::rtl
