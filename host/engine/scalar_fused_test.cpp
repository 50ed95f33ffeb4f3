// Fused operations with numbers worked out by hand, and the bound of block-scaled int8.
#include "penstock/engine/scalar_fused.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "penstock/engine/accept.h"
#include "penstock/queue/queue.h"

namespace penstock {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Runs a descriptor whose addresses are of this process; both host engines have to agree.
class FusedTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto engine = make_engine(GetParam());
    ASSERT_TRUE(engine.ok());
    engine_ = std::move(engine).value();
    QueueConfig config;
    config.depth = 2;
    queue_ = Queue::create(nullptr, config).value();
  }
  penstock_completion run(const penstock_descriptor& d) {
    EXPECT_TRUE(queue_->submit(d));
    penstock_completion c{};
    engine_->advance(*queue_);
    EXPECT_TRUE(queue_->poll(&c));
    return c;
  }
  // n sources of one vector's length.
  template <typename In, typename Out>
  std::uint32_t reduce(std::uint32_t type, std::uint32_t out_type, std::uint32_t redop,
                       std::uint32_t block, const std::vector<std::vector<In>>& sources,
                       std::uint64_t count, std::vector<Out>* out) {
    penstock_descriptor d = record(type, out_type, redop, block, count);
    d.n_src = static_cast<std::uint8_t>(sources.size());
    for (std::size_t s = 0; s < sources.size(); ++s)
      d.src[s] = penstock_address_host(sources[s].data());
    d.dst[0] = penstock_address_host(out->data());
    d.scale = scale_;
    d.flags = flags_;
    last_ = run(d);
    return last_.status;
  }
  static penstock_descriptor record(std::uint32_t type, std::uint32_t out_type, std::uint32_t redop,
                                    std::uint32_t block, std::uint64_t count) {
    penstock_descriptor d{};
    d.opcode = PENSTOCK_OP_REDUCE;
    d.version = PENSTOCK_DESCRIPTOR_VERSION;
    d.type = static_cast<std::uint8_t>(type);
    d.out_type = static_cast<std::uint8_t>(out_type);
    d.redop = static_cast<std::uint8_t>(redop);
    d.block = static_cast<std::uint8_t>(block);
    d.n_dst = 1;
    d.count = count;
    return d;
  }
  std::vector<std::byte> quantise(const std::vector<float>& values, std::uint32_t block) {
    std::vector<std::byte> out(penstock_operand_bytes(PENSTOCK_INT8, block, values.size()));
    EXPECT_EQ(reduce(PENSTOCK_F32, PENSTOCK_INT8, PENSTOCK_SUM, block,
                     std::vector<std::vector<float>>{values}, values.size(), &out),
              std::uint32_t{PENSTOCK_OK});
    return out;
  }
  std::vector<float> dequantise(const std::vector<std::byte>& records, std::uint32_t block,
                                std::uint64_t count) {
    std::vector<float> out(count);
    EXPECT_EQ(reduce(PENSTOCK_INT8, PENSTOCK_F32, PENSTOCK_SUM, block,
                     std::vector<std::vector<std::byte>>{records}, count, &out),
              std::uint32_t{PENSTOCK_OK});
    return out;
  }
  static float scale_at(const std::vector<std::byte>& records, std::uint32_t block,
                        std::size_t index) {
    float scale = 0;
    std::memcpy(&scale, records.data() + index / block * (4 + block), 4);
    return scale;
  }

  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Queue> queue_;
  std::uint64_t scale_ = 0;
  std::uint32_t flags_ = 0;
  penstock_completion last_{};
};

TEST_P(FusedTest, Bf16SumsLeaveAsF32WithoutRounding) {
  // 1 + 2^-7 is a bf16 number, and so is 2^-9; their sum has more bits than bf16.
  const std::vector<std::vector<std::uint16_t>> src = {{0x3f81, 0x7f80}, {0x3b00, 0xff80}};
  std::vector<std::uint32_t> out(2);
  ASSERT_EQ(reduce(PENSTOCK_BF16, PENSTOCK_F32, PENSTOCK_SUM, 0, src, 2, &out),
            std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(std::bit_cast<float>(out[0]), 1.0f + 0x1p-7f + 0x1p-9f);
  EXPECT_EQ(out[1], 0x7fc00000u);  // infinity minus infinity
}

TEST_P(FusedTest, F32SumsAreRoundedOnce) {
  // 1 + 2^-8 lies in the middle of two bf16 numbers, and the even one is 1; with 2^-20 more the
  // upper one is nearer. Rounding after each addition would lose that.
  const std::vector<std::vector<float>> src = {{1, 1}, {0x1p-8f, 0x1p-8f}, {0, 0x1p-20f}};
  std::vector<std::uint16_t> out(2);
  ASSERT_EQ(reduce(PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_SUM, 0, src, 2, &out),
            std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(out[0], 0x3f80);
  EXPECT_EQ(out[1], 0x3f81);
}

TEST_P(FusedTest, OneSourceIsConverted) {
  const std::vector<std::vector<float>> src = {{70000, -70000, 0x1p-149f, kNan, 500}};
  std::vector<std::uint16_t> f16(5);
  ASSERT_EQ(reduce(PENSTOCK_F32, PENSTOCK_F16, PENSTOCK_MAX, 0, src, 5, &f16),
            std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(f16, (std::vector<std::uint16_t>{0x7c00, 0xfc00, 0, 0x7e00, 0x5fd0}));
  std::vector<std::uint8_t> f8(5);
  ASSERT_EQ(reduce(PENSTOCK_F32, PENSTOCK_F8E4M3, PENSTOCK_MAX, 0, src, 5, &f8),
            std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(f8, (std::vector<std::uint8_t>{0x7e, 0xfe, 0, 0x7f, 0x7e}));
}

TEST_P(FusedTest, AnAbsentMembersNanDoesNotSpread) {
  const std::vector<std::vector<float>> src = {{4, 8}, {kNan, kInfinity}, {10, -8}};
  alignas(8) const float weights[] = {1, -0.0f, 3};
  scale_ = penstock_address_host(weights);
  flags_ = PENSTOCK_FLAG_WEIGHTS;
  std::vector<float> out(2);
  ASSERT_EQ(reduce(PENSTOCK_F32, PENSTOCK_F32, PENSTOCK_AVG, 0, src, 2, &out),
            std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(out, (std::vector<float>{8.5f, -4}));
  ASSERT_EQ(reduce(PENSTOCK_F32, PENSTOCK_F32, PENSTOCK_PREMUL_SUM, 0, src, 2, &out),
            std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(out, (std::vector<float>{34, -16}));
}

TEST_P(FusedTest, WeightsOfOneGiveTheAverage) {
  // 5 / 3 would end in ...555; 5 times the rounded third does not.
  const std::vector<std::vector<float>> src = {{5}, {0}, {0}};
  alignas(8) const float weights[] = {1, 1, 1};
  scale_ = penstock_address_host(weights);
  flags_ = PENSTOCK_FLAG_WEIGHTS;
  std::vector<float> out(1);
  ASSERT_EQ(reduce(PENSTOCK_F32, PENSTOCK_F32, PENSTOCK_AVG, 0, src, 1, &out),
            std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(out[0]), 0x3fd55556u);
  flags_ = 0;
  scale_ = 0;
  ASSERT_EQ(reduce(PENSTOCK_F32, PENSTOCK_F32, PENSTOCK_AVG, 0, src, 1, &out),
            std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(out[0]), 0x3fd55556u);
}

TEST_P(FusedTest, WeightsOfZeroAreNamed) {
  const std::vector<std::vector<double>> src = {{1}, {2}};
  alignas(8) const double weights[] = {0, 0};
  scale_ = penstock_address_host(weights);
  flags_ = PENSTOCK_FLAG_WEIGHTS;
  std::vector<double> out = {77};
  EXPECT_EQ(reduce(PENSTOCK_F64, PENSTOCK_F64, PENSTOCK_AVG, 0, src, 1, &out),
            std::uint32_t{PENSTOCK_INVALID_ARGUMENT});
  EXPECT_EQ(last_.field, std::uint32_t{PENSTOCK_FIELD_WEIGHTS});
  EXPECT_EQ(last_.detail, scale_);
  EXPECT_EQ(out[0], 77);
  const penstock_descriptor d = record(PENSTOCK_F64, PENSTOCK_F64, PENSTOCK_AVG, 0, 1);
  EXPECT_NE(
      describe_refusal(d, last_.status, last_.field, last_.detail).message().find("every weight"),
      std::string::npos);
}

TEST_P(FusedTest, ARecordByHand) {
  // The largest is 254, so a step is 2: 3 lies in the middle of 1 and 2 steps and goes to the even.
  std::vector<float> values(33, 0);
  values[0] = -254;
  values[1] = 3;
  values[2] = 5;
  values[3] = 1;
  values[32] = 127;
  const std::vector<std::byte> records = quantise(values, 32);
  ASSERT_EQ(records.size(), 72u);
  EXPECT_EQ(scale_at(records, 32, 0), 2.0f);
  EXPECT_EQ(scale_at(records, 32, 32), 1.0f);
  const auto code = [&](std::size_t at) { return static_cast<std::int8_t>(records[at]); };
  EXPECT_EQ(code(4), -127);
  EXPECT_EQ(code(5), 2);
  EXPECT_EQ(code(6), 2);
  EXPECT_EQ(code(7), 0);
  EXPECT_EQ(code(40), 127);
  for (std::size_t i = 41; i < 72; ++i) EXPECT_EQ(code(i), 0) << i;
  EXPECT_EQ(dequantise(records, 32, 33)[0], -254);
}

TEST_P(FusedTest, NanStaysAndInfinitySaturates) {
  std::vector<float> values(64, 1);
  values[7] = kNan;
  std::vector<float> back = dequantise(quantise(values, 64), 64, 64);
  EXPECT_TRUE(std::isnan(back[7]));
  EXPECT_EQ(back[8], 1);
  values[9] = -kInfinity;
  back = dequantise(quantise(values, 64), 64, 64);
  EXPECT_TRUE(std::isnan(back[7]));
  EXPECT_EQ(back[8], 0);  // too small beside an infinity
  EXPECT_TRUE(std::isfinite(back[9]));
  EXPECT_LT(back[9], -3.4e38f);
}

// Over all magnitudes of f32, the smallest and the largest among them.
TEST_P(FusedTest, TheErrorOfARecordIsBounded) {
  std::mt19937 random(7);
  double worst = 0;
  for (const std::uint32_t block : {32u, 64u}) {
    for (int exponent = -149; exponent <= 127; ++exponent) {
      std::vector<float> values(200);
      for (float& value : values)
        value = std::ldexp(static_cast<float>(random() % 0x2000000) - 0x1000000, exponent - 24);
      if (exponent == 127) values[5] = std::numeric_limits<float>::max();
      const std::vector<std::byte> records = quantise(values, block);
      const std::vector<float> back = dequantise(records, block, values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double scale = scale_at(records, block, i);
        const double wrong = std::fabs(double{values[i]} - double{back[i]}) / scale;
        ASSERT_LE(wrong, 0.5 + 0x1p-15) << values[i] << " of scale " << scale;
        ASSERT_GE(scale, 0x1p-126);
        worst = std::max(worst, wrong);
      }
    }
  }
  EXPECT_GT(worst, 0.499);  // the bound says something
}

TEST_P(FusedTest, OuterStepByHand) {
  // g = (1 + 3 + 8) / 3 is 12 * f32(1/3) = 4; m = 0.5 * 2 + 4; p = 10 - 0.25 * (0.5 * 5 + 4).
  const std::vector<float> deltas[] = {{1}, {3}, {8}};
  std::vector<float> momentum = {2}, parameters = {10};
  penstock_descriptor d = record(PENSTOCK_F32, PENSTOCK_F32, PENSTOCK_AVG, 0, 1);
  d.opcode = PENSTOCK_OP_OUTER_STEP;
  d.n_src = 3;
  d.n_dst = 2;
  for (std::size_t s = 0; s < 3; ++s) d.src[s] = penstock_address_host(deltas[s].data());
  d.dst[0] = penstock_address_host(momentum.data());
  d.dst[1] = penstock_address_host(parameters.data());
  d.scale = std::bit_cast<std::uint32_t>(0.25f) | std::uint64_t{std::bit_cast<std::uint32_t>(0.5f)}
                                                      << 32;
  EXPECT_EQ(run(d).status, std::uint32_t{PENSTOCK_OK});
  EXPECT_EQ(momentum[0], 5);
  EXPECT_EQ(parameters[0], 8.375f);
  // Momentum that is a delta as well, or the parameters, is refused and left alone.
  d.src[1] = d.dst[0];
  penstock_completion c = run(d);
  EXPECT_EQ(c.status, std::uint32_t{PENSTOCK_INVALID_ARGUMENT});
  EXPECT_EQ(c.field, std::uint32_t{PENSTOCK_FIELD_DST});
  d.src[1] = penstock_address_host(deltas[1].data());
  d.dst[1] = d.dst[0] + 2;
  c = run(d);
  EXPECT_EQ(c.status, std::uint32_t{PENSTOCK_INVALID_ARGUMENT});
  EXPECT_EQ(momentum[0], 5);
}

TEST_P(FusedTest, ADestinationOfAnotherSizeOverlapsNothing) {
  std::vector<float> memory(64, 1);
  penstock_descriptor d = record(PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_SUM, 0, 16);
  d.n_src = 1;
  d.src[0] = d.dst[0] = penstock_address_host(memory.data());
  EXPECT_EQ(run(d).field, std::uint32_t{PENSTOCK_FIELD_DST});
  d.dst[0] = penstock_address_host(memory.data() + 16);
  EXPECT_EQ(run(d).status, std::uint32_t{PENSTOCK_OK});
  d.type = PENSTOCK_F16;  // as wide as bf16
  d.dst[0] = d.src[0];
  EXPECT_EQ(run(d).status, std::uint32_t{PENSTOCK_OK});
}

INSTANTIATE_TEST_SUITE_P(Engines, FusedTest, testing::Values("scalar", "simd"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace penstock
