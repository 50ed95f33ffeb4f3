// BALANCED of two resources against float64 arithmetic, a row in each cycle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <random>

#include <verilated.h>
#include "Vpenstock_scan_balanced.h"
#include "penstock/rtl/coverage/save_coverage.h"

namespace penstock::rtl {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 53;

struct Row {
  std::uint64_t allocatable[2], used[2];
  unsigned take;
};

// As node_table.h defines it; the processor rounds each operation to nearest even.
int expected(const Row& row) {
  double fraction[2] = {};
  int n = 0;
  for (int e = 0; e < 2; ++e) {
    if (row.allocatable[e] == 0 || (row.take >> e & 1) == 0) continue;
    const volatile double quotient =
        static_cast<double>(row.used[e]) / static_cast<double>(row.allocatable[e]);
    fraction[n++] = std::min(1.0, static_cast<double>(quotient));
  }
  volatile double deviation = 0;
  if (n == 2) deviation = std::fabs(fraction[0] - fraction[1]);
  deviation = deviation / 2;
  const volatile double rest = 1 - deviation;
  const volatile double score = rest * 100;
  return static_cast<int>(score);
}

// The block has a clock and no reset.
class Block {
 public:
  explicit Block(int seed) {
    context_->randReset(2);
    context_->randSeed(seed);
    model_ = std::make_unique<Vpenstock_scan_balanced>(context_.get());
  }
  ~Block() {
    model_->final();
    save_coverage(*context_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Vpenstock_scan_balanced* operator->() { return model_.get(); }
  void tick() {
    model_->clk_i = 0;
    model_->eval();
    model_->clk_i = 1;
    model_->eval();
  }

 private:
  std::unique_ptr<VerilatedContext> context_ = std::make_unique<VerilatedContext>();
  std::unique_ptr<Vpenstock_scan_balanced> model_;
};

// Puts two numbers of `bits` each beside one another.
template <typename Port>
void put(Port& port, std::uint64_t low, std::uint64_t high, unsigned bits) {
  const std::uint64_t words[2] = {low | high << bits, high >> (64 - bits)};
  for (std::size_t w = 0; w < 4; ++w)
    port[w] = static_cast<std::uint32_t>(words[w / 2] >> (32 * (w % 2)));
}

class Source {
 public:
  explicit Source(std::uint64_t seed) : random_(seed) {}

  Row next() {
    Row row{};
    row.take = random_() % 16 == 0 ? static_cast<unsigned>(random_() % 4) : 3;
    for (int e = 0; e < 2; ++e) {
      row.allocatable[e] = quantity();
      row.used[e] =
          random_() % 8 == 0 ? quantity() + quantity() : random_() % (row.allocatable[e] + 1);
    }
    switch (random_() % 6) {
      case 0:  // equal or nearly equal fractions
        row.allocatable[1] = row.allocatable[0];
        row.used[1] = row.used[0] + random_() % 3;
        break;
      case 1: {  // a difference of a whole number of hundredths, or next to it
        const std::uint64_t all = (1 + random_() % (std::uint64_t{1} << 44)) * 100;
        const std::uint64_t percent = random_() % 101;
        row.allocatable[0] = row.allocatable[1] = all;
        row.used[1] = random_() % (all - all / 100 * percent + 1);
        row.used[0] = row.used[1] + all / 100 * percent + random_() % 3;
        break;
      }
      case 2:  // far apart
        row.used[0] = random_() % 4;
        row.allocatable[0] = kMost - random_() % 4;
        break;
      default:
        break;
    }
    return row;
  }

 private:
  std::uint64_t quantity() {
    switch (random_() % 6) {
      case 0:
        return random_() % 3;
      case 1:
        return kMost - random_() % 3;
      case 2:
        return std::uint64_t{1} << random_() % 54;
      case 3:
        return random_() % 1000;
      default:
        return std::min(random_() >> (11 + random_() % 50), kMost);
    }
  }
  std::mt19937_64 random_;
};

TEST(Balanced, IsFloat64BitForBit) {
  Block dut(1);
  std::mt19937_64 random(PENSTOCK_SEED + 1);
  Source source(PENSTOCK_SEED);
  constexpr int kRows = PENSTOCK_BALANCED_ROWS;
  constexpr std::size_t kLatency = 65;
  std::deque<std::pair<Row, bool>> under_way;  // and whether there is one
  std::uint32_t token[3] = {};                 // bit k: stage k
  int compared = 0;
  int seen[101] = {};
  for (int i = 0; i < kRows + 100; ++i) {
    const bool there = i < kRows && random() % 20 != 0;
    const Row row = source.next();
    token[2] = token[2] << 1 | token[1] >> 31;
    token[1] = token[1] << 1 | token[0] >> 31;
    token[0] = token[0] << 1 | (there ? 1 : 0);
    for (int w = 0; w < 3; ++w) dut->token_i[static_cast<std::size_t>(w)] = token[w];
    dut->token_i[2] &= 1;
    dut->take_i = static_cast<std::uint8_t>(row.take);
    put(dut->allocatable_i, row.allocatable[0], row.allocatable[1], 54);
    put(dut->used_i, row.used[0], row.used[1], 55);
    dut->asks_65i = 1;
    under_way.emplace_back(row, there);
    dut.tick();
    if (under_way.size() < kLatency) continue;
    const auto [done, valid] = under_way.front();
    under_way.pop_front();
    if (!valid) continue;
    const int score = expected(done);
    ASSERT_EQ(static_cast<int>(dut->score_o), score)
        << done.used[0] << "/" << done.allocatable[0] << " and " << done.used[1] << "/"
        << done.allocatable[1] << ", taken " << done.take;
    ++compared;
    ++seen[score];
  }
  EXPECT_GT(compared, kRows * 9 / 10);
  for (int score = 50; score <= 100; ++score) EXPECT_GT(seen[score], 0) << score;
}

TEST(Balanced, WhoAsksForNoneScoresNothing) {
  Block dut(2);
  for (std::size_t w = 0; w < 3; ++w) dut->token_i[w] = w == 2 ? 1 : ~0u;
  for (std::size_t w = 0; w < 4; ++w) dut->allocatable_i[w] = dut->used_i[w] = 0x01010101;
  dut->take_i = 3;
  dut->asks_65i = 0;
  for (int i = 0; i < 70; ++i) dut.tick();
  EXPECT_EQ(dut->score_o, 0);
  dut->asks_65i = 1;
  dut.tick();
  EXPECT_GT(dut->score_o, 0);
}

}  // namespace
}  // namespace penstock::rtl
