// penstock_reduce with the fold: memory holds, to the bit, what the kernels of the engine `scalar`
// leave, and the rate of the busier port is sustained for every kind of element.
#include <Vpenstock_reduce.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>

#include "penstock/engine/host_engine.h"
#include "penstock/rtl/reduce/reduce_test_rig.h"

namespace penstock::rtl {
namespace {

using ::testing::IsEmpty;
using Rig = ReduceRig<Vpenstock_reduce>;

constexpr std::uint32_t kFloats[] = {PENSTOCK_F32, PENSTOCK_F16, PENSTOCK_BF16, PENSTOCK_F8E4M3,
                                     PENSTOCK_F8E5M2};
constexpr std::uint32_t kIntegers[] = {PENSTOCK_INT8,   PENSTOCK_UINT8, PENSTOCK_INT32,
                                       PENSTOCK_UINT32, PENSTOCK_INT64, PENSTOCK_UINT64};

// Submits the job, and lets `scalar` do it in the expected memory.
void submit(Rig& rig, const ReduceJob& job) {
  static const auto kernels = scalar_kernels();
  std::vector<const void*> src;
  std::vector<void*> dst;
  for (const std::uint64_t at : job.src) src.push_back(rig.expected() + at);
  for (const std::uint64_t at : job.dst) dst.push_back(rig.expected() + at);
  const auto n_dst = static_cast<std::uint32_t>(dst.size());
  if (job.copy) {
    kernels->copy(dst.data(), n_dst, src[0], job.count, false);
  } else {
    ReduceArguments a{job.type,  job.redop,  static_cast<std::uint32_t>(src.size()),
                      n_dst,     src.data(), dst.data(),
                      job.count, job.scale};
    a.out_type = job.out_type;
    kernels->reduce(a);
  }
  rig.submit(job);
}

void expect_success(Rig& rig) {
  ASSERT_FALSE(rig.ends().empty());
  for (const ReduceEnd& end : rig.ends()) EXPECT_FALSE(end.error);
  EXPECT_EQ(rig.difference(), -1);
  EXPECT_THAT(rig.slave().violations(), IsEmpty());
}

// Sources of floats: of ordinary size often, so that sums are not all infinite.
void tame(Rig& rig, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t at = begin; at < end; at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, rig.bytes() + at, 4);
    if (!rig.random().chance(16)) word &= 0xbfffbfff;
    std::memcpy(rig.bytes() + at, &word, 4);
    std::memcpy(rig.expected() + at, &word, 4);
  }
}

ReduceJob random_job(sim::Random& random) {
  ReduceJob job;
  job.copy = random.chance(10);
  const bool floating = random.chance(2);
  job.type = floating ? kFloats[random.below(5)] : kIntegers[random.below(6)];
  job.out_type = floating && random.chance(2) ? kFloats[random.below(5)] : job.type;
  job.redop = random.below(6);
  // In f32, or in the integer's type.
  job.scale = floating ? 0x3f000000u + random.below(0x1000000) : random.next();
  const std::uint32_t size = penstock_type_size(job.type);
  job.count = 1 + random.below((random.chance(6) ? 13000 : random.chance(2) ? 300 : 5000) / size);
  job.src.resize(job.copy ? 1 : 1 + random.below(random.chance(12) ? 64 : 5));
  job.dst.resize(1 + random.below(3));
  return job;
}

TEST(ReduceFold, MemoryHoldsWhatScalarLeaves) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ReduceRigConfig config;
    config.axi.seed = seed;
    config.pause_one_in = seed % 3 == 0 ? 4 : 0;
    Rig rig(config);
    tame(rig, 0, 1 << 16);
    Places places(1 << 18, 1 << 20);
    std::size_t jobs = 0;
    for (; jobs < 60; ++jobs) {
      ReduceJob job = random_job(rig.random());
      const std::uint64_t bytes = job.count * 4 * penstock_type_size(job.type);
      if (!places.has(3 * (bytes + 256))) break;
      const std::uint32_t limit = rig.random().chance(2) ? 1 << 16 : 1 << 18;
      for (std::uint64_t& src : job.src) src = rig.random().below(limit - 20000);
      for (std::uint64_t& dst : job.dst) dst = places.take(bytes, rig.random());
      submit(rig, job);
    }
    compared += jobs;
    SCOPED_TRACE(seed);
    ASSERT_TRUE(rig.run(3'000'000)) << rig.ends().size() << " of " << jobs;
    expect_success(rig);
  }
  EXPECT_GT(compared, 200u);
}

double rate_of(std::uint32_t n, std::uint32_t destinations, std::uint64_t bytes, std::uint32_t type,
               std::uint32_t out_type, bool aligned, std::uint32_t redop = PENSTOCK_SUM) {
  Rig rig(at_full_rate(8 << 20));
  const double rate =
      measure_rate(rig,
                   {n, destinations, bytes, type, out_type, penstock_type_size(type),
                    penstock_type_size(out_type), aligned},
                   [redop](Rig& to, ReduceJob job) {
                     job.redop = redop;
                     job.scale = 0x3f800000;
                     submit(to, job);
                   });
  expect_success(rig);
  return rate;
}

TEST(ReduceFold, SustainsTheRateOfTheBusierPort) {
  for (const std::uint32_t type :
       {PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_F8E4M3, PENSTOCK_INT8, PENSTOCK_INT64})
    for (const std::uint32_t n : {1u, 2u, 8u}) {
      EXPECT_GE(rate_of(n, 1, 4 << 10, type, type, false), 0.90) << type << " n " << n;
      EXPECT_GE(rate_of(n, 1, 64 << 10, type, type, false), 0.95) << type << " n " << n;
    }
  EXPECT_GE(rate_of(64, 1, 4 << 10, PENSTOCK_F16, PENSTOCK_F16, false), 0.90);
  EXPECT_GE(rate_of(1, 3, 64 << 10, PENSTOCK_F32, PENSTOCK_F32, false), 0.95);
  EXPECT_GE(rate_of(1, 1, 64 << 10, PENSTOCK_F32, PENSTOCK_F8E5M2, false), 0.95);
  EXPECT_GE(rate_of(1, 1, 64 << 10, PENSTOCK_F8E5M2, PENSTOCK_F32, false), 0.95);
}

// From the acceptance of a job of one beat to its end, without what memory takes.
std::uint64_t cycles_of_a_beat(std::uint32_t n, std::uint32_t type) {
  Rig rig(at_full_rate(1 << 20));
  ReduceJob job;
  job.type = job.out_type = type;
  job.count = 64 / penstock_type_size(type);
  for (std::uint64_t s = 0; s < n; ++s) job.src.push_back(4096 * s);
  job.dst = {1 << 19};
  submit(rig, job);
  EXPECT_TRUE(rig.run(10000));
  expect_success(rig);
  return rig.ends()[0].cycle - rig.begins()[0] - 400;
}

TEST(ReduceFold, ABeatTakesLittleBesideMemory) {
  for (const std::uint32_t type : {PENSTOCK_F32, PENSTOCK_F8E4M3, PENSTOCK_INT64}) {
    const std::uint64_t one = cycles_of_a_beat(1, type);
    const std::uint64_t two = cycles_of_a_beat(2, type);
    std::printf("%s: %u cycles with one source, %u with two\n", penstock_type_name(type),
                static_cast<std::uint32_t>(one), static_cast<std::uint32_t>(two));
    EXPECT_LE(one, 50u);
    EXPECT_LE(two, 60u);
  }
}

// Every type, operation and size: minutes. Its output is the table of README.md.
TEST(ReduceFoldFull, SustainsTheRateOfTheBusierPort) {
  for (const bool aligned : {true, false})
    for (const std::uint32_t n : {1u, 2u, 4u, 8u, 16u, 64u})
      for (const std::uint64_t bytes : {4u << 10, 64u << 10, 1u << 20}) {
        const double rate = rate_of(n, 1, bytes, PENSTOCK_F32, PENSTOCK_F32, aligned);
        std::printf("%s, n = %2u, %4u KiB: %.4f\n", aligned ? "aligned" : "any byte", n,
                    static_cast<std::uint32_t>(bytes >> 10), rate);
        EXPECT_GE(rate, bytes < 65536 ? 0.90 : 0.95);
      }
  const auto check = [](std::uint32_t n, std::uint32_t type, std::uint32_t out_type) {
    for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop) {
      EXPECT_GE(rate_of(n, 1, 4 << 10, type, out_type, false, redop), 0.90)
          << n << " of " << type << " to " << out_type << ", redop " << redop;
      EXPECT_GE(rate_of(n, 1, 64 << 10, type, out_type, false, redop), 0.95)
          << n << " of " << type << " to " << out_type << ", redop " << redop;
    }
  };
  for (const std::uint32_t n : {1u, 2u, 3u}) {
    for (const std::uint32_t type : kIntegers) check(n, type, type);
    for (const std::uint32_t type : kFloats)
      for (const std::uint32_t out_type : kFloats) check(n, type, out_type);
  }
}

}  // namespace
}  // namespace penstock::rtl
