// The expectation of the scenarios, held against results worked out by hand.
#include "penstock/sim/incoherent/expectation.h"

#include <gtest/gtest.h>

#include <cstring>

namespace penstock::sim {
namespace {

// Rank r's element i is (r + 1) * 10 + i; integers are made of the bits above the lowest eight.
std::uint64_t input(std::uint32_t rank, std::uint64_t index) {
  return ((rank + 1) * 10 + index) << 8;
}

std::vector<std::int32_t> result(Collective collective, std::uint32_t rank, std::uint32_t redop,
                                 bool sender = false) {
  Call call;
  call.collective = collective;
  call.count = 2;
  call.type = PENSTOCK_INT32;
  call.redop = redop;
  call.root = 1;
  call.sender = sender;
  const std::vector<std::byte> bytes = expected_result(call, rank, 3, input);
  std::vector<std::int32_t> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

using Values = std::vector<std::int32_t>;

TEST(Expectation, folds) {
  EXPECT_EQ(result(Collective::all_reduce, 2, PENSTOCK_SUM), (Values{60, 63}));
  EXPECT_EQ(result(Collective::all_reduce, 0, PENSTOCK_PROD), (Values{6000, 11 * 21 * 31}));
  EXPECT_EQ(result(Collective::all_reduce, 0, PENSTOCK_MIN), (Values{10, 11}));
  EXPECT_EQ(result(Collective::all_reduce, 0, PENSTOCK_MAX), (Values{30, 31}));
  EXPECT_EQ(result(Collective::all_reduce, 0, PENSTOCK_AVG), (Values{20, 21}));
  EXPECT_EQ(result(Collective::reduce, 1, PENSTOCK_SUM), (Values{60, 63}));
  EXPECT_EQ(result(Collective::reduce, 0, PENSTOCK_SUM), Values{});
  EXPECT_EQ(result(Collective::reduce_scatter, 1, PENSTOCK_SUM), (Values{66, 69}));
}

TEST(Expectation, moves) {
  EXPECT_EQ(result(Collective::broadcast, 0, PENSTOCK_SUM), (Values{20, 21}));
  EXPECT_EQ(result(Collective::scatter, 2, PENSTOCK_SUM), (Values{24, 25}));
  EXPECT_EQ(result(Collective::gather, 1, PENSTOCK_SUM), (Values{10, 11, 20, 21, 30, 31}));
  EXPECT_EQ(result(Collective::gather, 0, PENSTOCK_SUM), Values{});
  EXPECT_EQ(result(Collective::all_gather, 0, PENSTOCK_SUM), (Values{10, 11, 20, 21, 30, 31}));
  EXPECT_EQ(result(Collective::all_to_all, 1, PENSTOCK_SUM), (Values{12, 13, 22, 23, 32, 33}));
  EXPECT_EQ(result(Collective::send_recv, 0, PENSTOCK_SUM), (Values{20, 21}));
  EXPECT_EQ(result(Collective::send_recv, 0, PENSTOCK_SUM, true), Values{});
  EXPECT_EQ(result(Collective::barrier, 0, PENSTOCK_SUM), Values{});
}

TEST(Expectation, floats_are_folded_from_the_left) {
  Call call;
  call.collective = Collective::all_reduce;
  call.count = 1;
  call.type = PENSTOCK_F32;
  float parts[3];
  const std::uint64_t bits[3] = {0xf000000000000001, 0x3000000000abcdef, 0x0000000000fedcba};
  for (int rank = 0; rank < 3; ++rank) store_element(PENSTOCK_F32, bits[rank], &parts[rank]);
  const auto bytes =
      expected_result(call, 0, 3, [&](std::uint32_t rank, std::uint64_t) { return bits[rank]; });
  float folded = 0;
  ASSERT_EQ(bytes.size(), sizeof folded);
  std::memcpy(&folded, bytes.data(), sizeof folded);
  const volatile float first = parts[0] + parts[1];
  const volatile float all = first + parts[2];
  EXPECT_EQ(folded, all);
  EXPECT_NE(parts[0], 0.0f);
}

}  // namespace
}  // namespace penstock::sim
