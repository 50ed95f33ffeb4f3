#include "measure.h"

#include <gtest/gtest.h>

#include <cstring>

#include "least_lines.h"

namespace penstock::bench {
namespace {

Sample sample(double us, Placement placement, bool clean) { return {us, 100, placement, clean}; }

TEST(RowsOf, CleanSamplesAloneCountWhereThereAreThree) {
  const std::vector<Row> rows =
      rows_of({sample(5, Placement::near, true), sample(1, Placement::near, true),
               sample(3, Placement::near, true), sample(900, Placement::near, false)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].us, 3);
  EXPECT_EQ(rows[0].us_min, 1);
  EXPECT_EQ(rows[0].samples, 4u);
  EXPECT_EQ(rows[0].clean, 3u);
  EXPECT_EQ(rows[0].one_way_ns, 100);
}

TEST(RowsOf, AllCountWhereTooFewAreClean) {
  const std::vector<Row> rows =
      rows_of({sample(5, Placement::near, true), sample(1, Placement::near, true),
               sample(900, Placement::near, false)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].us, 5);
  EXPECT_EQ(rows[0].clean, 2u);
}

TEST(RowsOf, PlacementsAreKeptApart) {
  std::vector<Sample> samples;
  for (const double us : {1, 2, 3}) samples.push_back(sample(us, Placement::near, true));
  for (const double us : {10, 20, 30}) samples.push_back(sample(us, Placement::far, true));
  const std::vector<Row> rows = rows_of(samples);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].placement, Placement::near);
  EXPECT_EQ(rows[0].us, 2);
  EXPECT_EQ(rows[1].placement, Placement::far);
  EXPECT_EQ(rows[1].us, 20);
}

TEST(RowsOf, AFewStraysOfTheOtherPlacementGiveNoRow) {
  std::vector<Sample> samples(5, sample(1, Placement::far, true));
  samples.push_back(sample(9, Placement::near, true));
  const std::vector<Row> rows = rows_of(samples);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].placement, Placement::far);
}

TEST(Problem, PartsAreAtLeastOneElement) {
  EXPECT_EQ(Problem::make(Collective::all_gather, Type::f32, 4, 8).count, 1u);
  EXPECT_EQ(Problem::make(Collective::all_gather, Type::f32, 4, 64).count, 4u);
  EXPECT_EQ(Problem::make(Collective::all_reduce, Type::f32, 4, 64).count, 16u);
  EXPECT_EQ(Problem::make(Collective::all_reduce, Type::bf16, 4, 64).count, 32u);
  EXPECT_EQ(Problem::make(Collective::barrier, Type::f32, 4, 64).count, 0u);
}

// Two ranks, element i of rank r is r + 1 + i % 3: the sums are 3, 5, 7, 3, 5.
TEST(Problem, ResultsAreHeldAgainstTheFormula) {
  const Problem problem = Problem::make(Collective::all_reduce, Type::f32, 2, 20);
  float result[] = {3, 5, 7, 3, 5};
  EXPECT_TRUE(is_right(problem, 0, result));
  for (float& element : result) {
    element += 1;
    EXPECT_FALSE(is_right(problem, 0, result));
    element -= 1;
  }
  const Problem bytes = Problem::make(Collective::all_to_all, Type::int8, 2, 4);
  const std::int8_t exchanged[] = {3, 1, 4, 2};  // elements 2 and 3 of rank 0, then of rank 1
  EXPECT_TRUE(is_right(bytes, 1, exchanged));
  EXPECT_FALSE(is_right(bytes, 0, exchanged));
}

TEST(LeastLines, FollowWhatCrosses) {
  const auto least = [](Collective collective, std::uint32_t ranks, std::uint64_t bytes) {
    return least_lines(Problem::make(collective, Type::f32, ranks, bytes));
  };
  // 640 bytes are 10 lines. One writer, three readers; one signal, three who wait for it.
  EXPECT_EQ(least(Collective::broadcast, 4, 640).written_back, 10u + 1);
  EXPECT_EQ(least(Collective::broadcast, 4, 640).invalidated, 30u + 3);
  // Each of 4 ranks gives a line to each of 3 others.
  EXPECT_EQ(least(Collective::all_to_all, 4, 256).written_back, 12u + 4);
  EXPECT_EQ(least(Collective::all_to_all, 4, 256).invalidated, 12u + 12);
  EXPECT_EQ(least(Collective::send_recv, 2, 640).written_back, 10u + 1);
  EXPECT_EQ(least(Collective::barrier, 3, 0).written_back, 3u);
  EXPECT_EQ(least(Collective::barrier, 3, 0).invalidated, 6u);
  EXPECT_EQ(least(Collective::all_reduce, 1, 640).written_back, 0u);
}

}  // namespace
}  // namespace penstock::bench
