#include "penstock/comm/pairwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace penstock {
namespace {

TEST(PairwisePartners, AreDisjointPairsOfThoseWhoAreThere) {
  for (std::uint32_t ranks = 1; ranks <= 64; ++ranks) {
    for (std::uint64_t round = 0; round < 20; ++round) {
      for (const std::uint64_t absent : {std::uint64_t{0}, std::uint64_t{0x5555'5555'0000'0003}}) {
        const auto partners = pairwise_partners(7, round, ranks, absent);
        ASSERT_EQ(ranks, partners.size());
        std::uint32_t alone = 0;
        std::uint32_t present = 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          ASSERT_LT(partners[rank], ranks);
          ASSERT_EQ(rank, partners[partners[rank]]);
          const bool is_absent = (absent >> rank & 1) != 0;
          if (is_absent) {
            ASSERT_EQ(rank, partners[rank]);
          } else {
            ++present;
            alone += partners[rank] == rank;
          }
        }
        ASSERT_EQ(present % 2, alone);
      }
    }
  }
}

TEST(PairwisePartners, ComeFromSeedAndRoundAlone) {
  EXPECT_EQ(pairwise_partners(1, 2, 16), pairwise_partners(1, 2, 16));
  std::set<std::vector<std::uint32_t>> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t round = 0; round < 10; ++round) {
      seen.insert(pairwise_partners(seed, round, 32));
    }
  }
  EXPECT_EQ(100u, seen.size());
}

// Four ranks have three pairings; each has to come up in a third of 3000 rounds. The bound is five
// standard deviations.
TEST(PairwisePartners, AreEachAsLikely) {
  std::map<std::vector<std::uint32_t>, int> seen;
  for (std::uint64_t round = 0; round < 3000; ++round) ++seen[pairwise_partners(11, round, 4)];
  ASSERT_EQ(3u, seen.size());
  for (const auto& [pairing, count] : seen) EXPECT_NEAR(1000, count, 130);
}

}  // namespace
}  // namespace penstock
