#include "perf_expectation.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "penstock/descriptor/descriptor.h"

namespace penstock::tool {
namespace {

TEST(EncodeFloat, KnownCodes) {
  struct Case {
    std::uint32_t type;
    double value;
    std::uint64_t bits;
  };
  // Values from IEEE 754-2019 and from the OCP 8-bit floating-point document.
  const Case cases[] = {
      {PENSTOCK_F16, 1.0, 0x3c00},        {PENSTOCK_F16, -2.0, 0xc000},
      {PENSTOCK_F16, 65504.0, 0x7bff},    {PENSTOCK_F16, 65519.0, 0x7bff},
      {PENSTOCK_F16, 65520.0, 0x7c00},    {PENSTOCK_F16, 0x1p-24, 0x0001},
      {PENSTOCK_F16, 0x1p-25, 0x0000},    {PENSTOCK_F16, 0x1.8p-24, 0x0002},
      {PENSTOCK_F16, 0x1p-14, 0x0400},    {PENSTOCK_F16, 2049.0, 0x6800},
      {PENSTOCK_F16, 2051.0, 0x6802},     {PENSTOCK_F16, -0.0, 0x8000},
      {PENSTOCK_F16, NAN, 0x7e00},        {PENSTOCK_F16, -INFINITY, 0xfc00},
      {PENSTOCK_BF16, 1.0, 0x3f80},       {PENSTOCK_BF16, 257.0, 0x4380},
      {PENSTOCK_BF16, 259.0, 0x4382},     {PENSTOCK_BF16, 3.4e38, 0x7f80},
      {PENSTOCK_BF16, INFINITY, 0x7f80},  {PENSTOCK_F32, 1.0, 0x3f800000},
      {PENSTOCK_F32, -0.1, 0xbdcccccd},   {PENSTOCK_F64, 1.0, 0x3ff0000000000000},
      {PENSTOCK_F8E4M3, 448.0, 0x7e},     {PENSTOCK_F8E4M3, 1e9, 0x7e},
      {PENSTOCK_F8E4M3, -INFINITY, 0xfe}, {PENSTOCK_F8E4M3, 0x1p-9, 0x01},
      {PENSTOCK_F8E4M3, 17.0, 0x58},      {PENSTOCK_F8E4M3, 19.0, 0x5a},
      {PENSTOCK_F8E4M3, NAN, 0x7f},       {PENSTOCK_F8E5M2, 57344.0, 0x7b},
      {PENSTOCK_F8E5M2, 1e9, 0x7b},       {PENSTOCK_F8E5M2, 1.25, 0x3d},
      {PENSTOCK_F8E5M2, NAN, 0x7e},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(encode_float(c.type, c.value), c.bits)
        << penstock_type_name(c.type) << " of " << c.value;
  }
}

float decode_f32(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

Scenario scenario(Collective collective, std::uint32_t type, std::uint32_t redop,
                  std::uint32_t ranks, std::uint64_t count) {
  Scenario s;
  s.collective = collective;
  s.type = type;
  s.redop = redop;
  s.ranks = ranks;
  s.count = count;
  s.seed = 7;
  return s;
}

// The same fold in the type's own arithmetic, which the compiler provides for f32.
TEST(Reduced, F32AgainstTheProcessor) {
  for (const std::uint32_t redop :
       {PENSTOCK_SUM, PENSTOCK_PROD, PENSTOCK_AVG, PENSTOCK_PREMUL_SUM}) {
    for (const std::uint32_t ranks : {2u, 3u, 7u, 64u}) {
      const Scenario s = scenario(Collective::all_reduce, PENSTOCK_F32, redop, ranks, 1000);
      int finite = 0;
      for (std::uint64_t i = 0; i < s.count; ++i) {
        const float factor = redop == PENSTOCK_PREMUL_SUM ? 3.0f : 1.0f;
        float folded = factor * decode_f32(input_bits(s, 0, i));
        for (std::uint32_t rank = 1; rank < ranks; ++rank) {
          const float next = factor * decode_f32(input_bits(s, rank, i));
          folded = redop == PENSTOCK_PROD ? folded * next : folded + next;
        }
        if (redop == PENSTOCK_AVG) folded *= 1.0f / static_cast<float>(ranks);
        const float got = decode_f32(reduced_bits(s, i));
        if (std::isnan(folded)) {
          EXPECT_EQ(reduced_bits(s, i), 0x7fc00000u);
        } else {
          EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(folded)) << i;
          finite += std::isfinite(folded) ? 1 : 0;
        }
      }
      EXPECT_GT(finite, 500);
    }
  }
}

TEST(Reduced, IntegersWrapAndDivideTowardZero) {
  const Scenario sum = scenario(Collective::all_reduce, PENSTOCK_INT8, PENSTOCK_SUM, 3, 500);
  Scenario average = sum;
  average.redop = PENSTOCK_AVG;
  bool negative = false;
  for (std::uint64_t i = 0; i < sum.count; ++i) {
    int total = 0;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      total += static_cast<std::int8_t>(input_bits(sum, rank, i));
    }
    const auto wrapped = static_cast<std::int8_t>(total);
    EXPECT_EQ(static_cast<std::int8_t>(reduced_bits(sum, i)), wrapped);
    EXPECT_EQ(static_cast<std::int8_t>(reduced_bits(average, i)), wrapped / 3);
    negative = negative || wrapped < 0;
  }
  EXPECT_TRUE(negative);
}

TEST(Reduced, MinAndMaxOrderZerosAndLetNanWin) {
  const Scenario least = scenario(Collective::all_reduce, PENSTOCK_F32, PENSTOCK_MIN, 2, 20000);
  int nans = 0;
  for (std::uint64_t i = 0; i < least.count; ++i) {
    const float a = decode_f32(input_bits(least, 0, i));
    const float b = decode_f32(input_bits(least, 1, i));
    if (std::isnan(a) || std::isnan(b)) {
      ++nans;
      EXPECT_EQ(reduced_bits(least, i), 0x7fc00000u);
    } else {
      EXPECT_EQ(decode_f32(reduced_bits(least, i)), a < b ? a : b);
    }
  }
  EXPECT_GT(nans, 100);
}

// Does what the collective is, by its definition, on the buffers of all ranks.
void perform(const Scenario& s, std::vector<PerfBuffers>& ranks) {
  const std::uint64_t part = s.count * penstock_type_size(s.type);
  std::vector<std::vector<std::byte>> sent;
  for (std::uint32_t r = 0; r < s.ranks; ++r) {
    const auto* from = static_cast<const std::byte*>(ranks[r].send());
    sent.emplace_back(from, from + send_elements(s, r) * penstock_type_size(s.type));
  }
  for (std::uint32_t r = 0; r < s.ranks; ++r) {
    auto* to = static_cast<std::byte*>(ranks[r].recv());
    const auto copy = [&](std::uint64_t at, std::uint32_t from, std::uint64_t offset) {
      std::memcpy(to + at, sent[from].data() + offset, part);
    };
    for (std::uint32_t p = 0; p < s.ranks; ++p) {
      if (s.collective == Collective::all_gather) copy(p * part, p, 0);
      if (s.collective == Collective::gather && r == s.root) copy(p * part, p, 0);
      if (s.collective == Collective::all_to_all) copy(p * part, p, r * part);
    }
    if (s.collective == Collective::scatter) copy(0, s.root, r * part);
    if (s.collective == Collective::broadcast) copy(0, s.root, 0);
    if (s.collective == Collective::send_recv) copy(0, (r + s.ranks - 1) % s.ranks, 0);
  }
}

TEST(PerfBuffers, WhatTheDefinitionWritesIsRight) {
  for (const Collective collective :
       {Collective::all_gather, Collective::gather, Collective::all_to_all, Collective::scatter,
        Collective::broadcast, Collective::send_recv}) {
    for (const bool in_place : {false, true}) {
      Scenario s = scenario(collective, PENSTOCK_BF16, PENSTOCK_SUM, 3, 37);
      s.root = 1;
      s.in_place = in_place;
      std::vector<PerfBuffers> ranks;
      for (std::uint32_t r = 0; r < s.ranks; ++r) ranks.emplace_back(s, r);
      perform(s, ranks);
      for (std::uint32_t r = 0; r < s.ranks; ++r) {
        EXPECT_EQ(ranks[r].count_wrong(), 0u) << collective_name(collective) << " rank " << r;
      }
    }
  }
}

TEST(PerfBuffers, EveryWrongByteIsCounted) {
  Scenario s = scenario(Collective::broadcast, PENSTOCK_INT32, PENSTOCK_SUM, 2, 10);
  std::vector<PerfBuffers> ranks;
  for (std::uint32_t r = 0; r < s.ranks; ++r) ranks.emplace_back(s, r);
  EXPECT_EQ(ranks[1].count_wrong(), 10u);  // nothing received yet
  perform(s, ranks);
  auto* recv = static_cast<std::byte*>(ranks[1].recv());
  ASSERT_EQ(ranks[1].count_wrong(), 0u);
  recv[7] ^= std::byte{1};
  EXPECT_EQ(ranks[1].count_wrong(), 1u);
  recv[40] ^= std::byte{1};  // the guard behind it
  EXPECT_EQ(ranks[1].count_wrong(), 2u);
  recv[-1] ^= std::byte{1};  // and before it
  EXPECT_EQ(ranks[1].count_wrong(), 3u);
  auto* send = static_cast<std::byte*>(const_cast<void*>(ranks[1].send()));
  send[0] ^= std::byte{1};  // an input that a call must not change
  EXPECT_EQ(ranks[1].count_wrong(), 4u);
}

TEST(PerfBuffers, RootsAloneReceiveWhereThereIsOne) {
  Scenario s = scenario(Collective::reduce, PENSTOCK_INT32, PENSTOCK_SUM, 3, 10);
  s.root = 2;
  EXPECT_EQ(PerfBuffers(s, 0).count_wrong(), 0u);  // untouched is right
  EXPECT_EQ(PerfBuffers(s, 2).count_wrong(), 10u);
}

}  // namespace
}  // namespace penstock::tool
