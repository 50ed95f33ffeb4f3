#include "tune_measure.h"

#include <gtest/gtest.h>

namespace penstock::tool {
namespace {

TEST(BestSplit, ChangesOverWhereTheOtherWayBecomesFaster) {
  EXPECT_EQ(best_split({1, 2, 9, 9}, {2, 3, 4, 5}), 2u);
  EXPECT_EQ(best_split({1, 1, 1}, {2, 2, 2}), 3u);
  EXPECT_EQ(best_split({2, 2, 2}, {1, 1, 1}), 0u);
}

TEST(BestSplit, OneStrayMeasurementDoesNotMoveIt) {
  // The second is a little slower with the first way, the third and fourth are much faster.
  EXPECT_EQ(best_split({1, 2.1, 3, 4, 90}, {4, 2.0, 9, 9, 10}), 4u);
}

TEST(GainOfSplit, IsTheMeanOverAllSizes) {
  // At one of two sizes four times as fast: twice as fast in the mean.
  EXPECT_NEAR(gain_of_split({1, 4}, {1, 1}, 1, 2), 1.0, 1e-12);
  EXPECT_NEAR(gain_of_split({1, 4}, {1, 1}, 1, 1), 0.0, 1e-12);
  EXPECT_NEAR(gain_of_split({1, 4}, {1, 1}, 2, 1), -0.5, 1e-12);
}

}  // namespace
}  // namespace penstock::tool
