// penstock_reduce with a stand-in for the fold: where bytes go, how fast, and what happens when
// memory fails. What the numbers are is tested in reduce_fold_test.cpp.
#include <Vreduce_stand_in.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>

#include "penstock/rtl/reduce/reduce_test_rig.h"

namespace penstock::rtl {
namespace {

using ::testing::IsEmpty;
using Rig = ReduceRig<Vreduce_stand_in>;

constexpr std::uint32_t kTypes[4] = {1, 6, 3, 5};  // uint8, f16, uint32, uint64: by log2 of size

std::uint32_t size_of(std::uint32_t type) {
  return 1u << (std::find(kTypes, kTypes + 4, type) - kTypes);
}

std::uint64_t load(const std::uint8_t* from, std::uint32_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}

// What the job writes, by the stand-in's rules.
std::vector<std::uint8_t> result_of(const ReduceJob& job, const std::uint8_t* memory) {
  if (job.copy) return {memory + job.src[0], memory + job.src[0] + job.count};
  const std::uint32_t size = size_of(job.type);
  const std::uint32_t out_size = size_of(job.out_type);
  const std::uint64_t mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
  std::vector<std::uint8_t> out(job.count * out_size);
  for (std::uint64_t i = 0; i < job.count; ++i) {
    std::uint64_t sum = 0;
    for (const std::uint64_t src : job.src) sum += load(memory + src + i * size, size);
    sum &= mask;
    std::memcpy(&out[i * out_size], &sum, out_size);
  }
  return out;
}

// Submits the job and notes what it has to leave. Its sources hold already what they will.
void submit(Rig& rig, const ReduceJob& job) {
  const std::vector<std::uint8_t> result = result_of(job, rig.expected());
  for (const std::uint64_t dst : job.dst)
    std::memcpy(rig.expected() + dst, result.data(), result.size());
  rig.submit(job);
}

void expect_success(Rig& rig, std::size_t jobs) {
  ASSERT_EQ(rig.ends().size(), jobs);
  ASSERT_GT(jobs, 0u);
  for (std::size_t i = 0; i < jobs; ++i) {
    EXPECT_EQ(rig.ends()[i].queue, i % 64);
    EXPECT_FALSE(rig.ends()[i].error) << "job " << i;
  }
  EXPECT_EQ(rig.difference(), -1);
  EXPECT_THAT(rig.slave().violations(), IsEmpty());
}

ReduceRigConfig by_chance(std::uint64_t seed) {
  ReduceRigConfig config;
  config.axi.seed = seed;
  config.pause_one_in = seed % 3 == 0 ? 4 : 0;
  return config;
}

// A job of random shape: small counts mostly, one in eight of several chunks.
ReduceJob random_job(sim::Random& random) {
  ReduceJob job;
  job.copy = random.chance(4);
  const std::uint32_t size = random.below(4);
  job.type = job.copy ? random.below(16) : kTypes[size];
  // The card's types grow four times at most.
  job.out_type = job.copy           ? random.below(16)
                 : random.chance(2) ? job.type
                                    : kTypes[random.below(std::min(size + 3, 4u))];
  job.redop = random.below(6);
  job.scale = random.next();
  const std::uint32_t limit = random.chance(8) ? 12000 : random.chance(2) ? 400 : 9000;
  job.count = 1 + random.below(limit >> (job.copy ? 0 : size));
  job.src.resize(job.copy ? 1 : 1 + random.below(random.chance(8) ? 64 : 5));
  job.dst.resize(1 + random.below(3));
  return job;
}

TEST(Reduce, RandomJobsLeaveExactlyTheirResults) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rig rig(by_chance(seed));
    sim::Random& random = rig.random();
    Places places(1 << 18, 1 << 20);
    std::size_t jobs = 0;
    for (; jobs < 60; ++jobs) {
      ReduceJob job = random_job(random);
      const std::uint64_t bytes = job.count * 8;
      if (!places.has(3 * (bytes + 256))) break;
      for (std::uint64_t& src : job.src) src = random.below((1 << 18) - 100000);
      for (std::uint64_t& dst : job.dst) dst = places.take(bytes, random);
      submit(rig, job);
    }
    compared += jobs;
    ASSERT_TRUE(rig.run(2000000)) << "seed " << seed << ": " << rig.ends().size() << " of " << jobs;
    SCOPED_TRACE(seed);
    expect_success(rig, jobs);
  }
  EXPECT_GT(compared, 800u);
}

TEST(Reduce, EveryAlignmentOfSourceAndDestination) {
  for (const std::uint64_t seed : {1, 2}) {
    Rig rig(by_chance(seed));
    std::size_t jobs = 0;
    // Sources in the first quarter; each of the jobs writes over what those before it wrote.
    for (std::uint32_t from = 0; from < 64; ++from)
      for (std::uint32_t to = 0; to < 64; to += seed == 1 ? 1 : 7) {
        ReduceJob job;
        job.copy = true;
        job.count = 1 + rig.random().below(rig.random().chance(4) ? 300 : 130);
        job.src = {64 * rig.random().below(4000) + from};
        job.dst = {(1 << 19) + 64 * rig.random().below(4000) + to};
        submit(rig, job);
        ++jobs;
      }
    ASSERT_TRUE(rig.run(3000000));
    expect_success(rig, jobs);
  }
}

TEST(Reduce, EveryLengthAtTheEdgesOfAPage) {
  Rig rig(by_chance(4));
  std::size_t jobs = 0;
  for (std::int32_t before = 0; before <= 130; before += before < 5 ? 1 : 25)
    for (const std::uint32_t count :
         {1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 4095u, 4096u, 4097u}) {
      ReduceJob job;
      job.type = job.out_type = kTypes[0];
      job.count = count;
      job.src = {4096u * (3 + rig.random().below(90)) - before, 4096u * 7 - count + before};
      job.dst = {(1 << 19) + 4096u * (1 + rig.random().below(100)) - rig.random().below(131)};
      submit(rig, job);
      ++jobs;
    }
  ASSERT_TRUE(rig.run(1000000));
  expect_success(rig, jobs);
}

TEST(Reduce, ADestinationMayBeASource) {
  Rig rig(by_chance(5));
  Places places(1 << 19, 1 << 20);
  std::size_t jobs = 0;
  while (places.has(20000)) {
    ReduceJob job;
    job.type = job.out_type = kTypes[rig.random().below(4)];
    job.count = 1 + rig.random().below(2000);
    job.src.resize(3);
    for (std::uint64_t& src : job.src) src = rig.random().below(1 << 18);
    job.dst = {places.take(job.count * 8, rig.random())};
    job.src[rig.random().below(3)] = job.dst[0];
    submit(rig, job);
    ++jobs;
  }
  ASSERT_TRUE(rig.run(1000000));
  expect_success(rig, jobs);
}

// Where one source or one destination of a job fails, with jobs before and after it that are fine.
struct Fault {
  bool write;
  std::uint64_t at;  // byte of the operand
  std::uint32_t operand;
  const char* name;
};

class ReduceFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(ReduceFaults, EndTheirJobWithTheAddressAndNoOther) {
  const Fault fault = GetParam();
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Rig rig(by_chance(seed));
    // Seven pages, of which the operand's first is cut by its start.
    constexpr std::uint64_t kBytes = 6 * 4096 + 777;
    Places places(1 << 16, 1 << 20);
    std::vector<std::uint64_t> failed_dst;
    for (std::uint32_t i = 0; i < 5; ++i) {
      ReduceJob job;
      job.type = job.out_type = kTypes[0];
      job.count = kBytes;
      for (int s = 0; s < 3; ++s) job.src.push_back(places.take(kBytes, rig.random()));
      for (int d = 0; d < 2; ++d) job.dst.push_back(places.take(kBytes, rig.random()));
      submit(rig, job);
      if (i != 2) continue;
      const std::uint64_t operand = fault.write ? job.dst[fault.operand] : job.src[fault.operand];
      const std::uint64_t line = (operand + fault.at) / 64 * 64;
      rig.memory().fail(Rig::kBus + line, 64, !fault.write, fault.write);
      // Of several the first is told.
      if (fault.at + 8192 < kBytes)
        rig.memory().fail(Rig::kBus + line + 8192, 64, !fault.write, fault.write);
      failed_dst = job.dst;
      // The burst that holds it begins with the operand, a page, or a chunk's first beat.
      const auto holds = [&](const ReduceEnd& end) {
        return end.offset >= operand && end.offset < line + 64 && end.offset + 4096 > line;
      };
      for (int k = i + 1; k < 5; ++k) {
        ReduceJob next = job;
        next.src = {places.take(kBytes, rig.random())};
        next.dst = {places.take(kBytes, rig.random())};
        submit(rig, next);
      }
      ASSERT_TRUE(rig.run(200000)) << rig.ends().size();
      ASSERT_EQ(rig.ends().size(), 5u);
      for (std::uint32_t k = 0; k < 5; ++k) EXPECT_EQ(rig.ends()[k].error, k == 2) << k;
      EXPECT_EQ(rig.ends()[2].write, fault.write);
      EXPECT_TRUE(holds(rig.ends()[2]))
          << rig.ends()[2].offset << " for " << operand << " + " << fault.at;
      break;
    }
    for (const std::uint64_t dst : failed_dst)
      std::memcpy(rig.expected() + dst, rig.bytes() + dst, kBytes);
    EXPECT_EQ(rig.difference(), -1);
    EXPECT_THAT(rig.slave().violations(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Places, ReduceFaults,
                         ::testing::Values(Fault{false, 0, 0, "FirstReadOfTheFirst"},
                                           Fault{false, 12000, 1, "MiddleRead"},
                                           Fault{false, 6 * 4096 + 776, 2, "LastRead"},
                                           Fault{false, 6 * 4096 + 776, 0, "LastReadOfTheFirst"},
                                           Fault{true, 0, 0, "FirstWrite"},
                                           Fault{true, 12000, 1, "MiddleWrite"},
                                           Fault{true, 6 * 4096 + 776, 1, "LastWrite"},
                                           Fault{true, 6 * 4096 + 776, 0, "LastWriteOfTheFirst"}),
                         [](const ::testing::TestParamInfo<Fault>& test) {
                           return test.param.name;
                         });

TEST(Reduce, FaultsByChanceNeverHangIt) {
  std::size_t failed = 0;
  std::size_t fine = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ReduceRigConfig config = by_chance(seed);
    config.axi.read_error_one_in = 40;
    config.axi.write_error_one_in = 40;
    Rig rig(config);
    Places places(1 << 18, 1 << 20);
    std::vector<ReduceJob> jobs;
    while (jobs.size() < 60) {
      ReduceJob job = random_job(rig.random());
      if (!places.has(3 * (job.count * 8 + 256))) break;
      for (std::uint64_t& src : job.src) src = rig.random().below((1 << 18) - 100000);
      for (std::uint64_t& dst : job.dst) dst = places.take(job.count * 8, rig.random());
      submit(rig, job);
      jobs.push_back(job);
    }
    ASSERT_TRUE(rig.run(2000000)) << "seed " << seed;
    ASSERT_EQ(rig.ends().size(), jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const ReduceEnd& end = rig.ends()[i];
      EXPECT_EQ(end.queue, i % 64);
      if (!end.error) {
        ++fine;
        continue;
      }
      ++failed;
      const std::uint64_t in = jobs[i].count * 8;
      bool named = false;
      for (const std::uint64_t at : end.write ? jobs[i].dst : jobs[i].src)
        named = named || (end.offset >= at && end.offset < at + in);
      EXPECT_TRUE(named) << "job " << i << " at " << end.offset;
      for (const std::uint64_t dst : jobs[i].dst)
        std::memcpy(rig.expected() + dst, rig.bytes() + dst, in);
    }
    EXPECT_EQ(rig.difference(), -1);
    EXPECT_THAT(rig.slave().violations(), IsEmpty());
  }
  EXPECT_GT(failed, 100u);
  EXPECT_GT(fine, 100u);
}

// The largest COPY there is, over the end of what is attached: it stops soon after the first burst
// that fails, and says where memory ends.
TEST(Reduce, AJobThatFailsIsNotReadToItsEnd) {
  Rig rig(by_chance(7));
  ReduceJob job;
  job.copy = true;
  job.count = 1ull << 32;
  job.src = {(1 << 20) - 10000};
  job.dst = {100};
  rig.submit(job);
  job.count = 5000;
  job.src = {700000};
  job.dst = {600001};
  submit(rig, job);
  ASSERT_TRUE(rig.run(20000));
  EXPECT_TRUE(rig.ends()[0].error);
  EXPECT_FALSE(rig.ends()[0].write);
  EXPECT_EQ(rig.ends()[0].offset, 1u << 20);
  EXPECT_FALSE(rig.ends()[1].error);
  std::memcpy(rig.expected(), rig.bytes(), 600000);
  EXPECT_EQ(rig.difference(), -1);
}

TEST(Reduce, JobsOverlapAndSlotsAreFreedEarly) {
  Rig rig(at_full_rate(1 << 20));
  constexpr std::size_t kJobs = 40;
  for (std::size_t i = 0; i < kJobs; ++i) {
    ReduceJob job;
    job.type = job.out_type = kTypes[1];
    job.count = 256;
    job.src = {64 * i + 3, 64 * i + 30000};
    for (std::size_t d = 0; d < 3; ++d) job.dst.push_back((1 << 19) + 3000 * i + 1000 * d);
    submit(rig, job);
  }
  ASSERT_TRUE(rig.run(100000));
  expect_success(rig, kJobs);
  // More than the two whose sources wait in slots, all that there are names for.
  EXPECT_EQ(rig.most_under_way(), 16u);
  EXPECT_GT(rig.full_slots(), 0u);
}

double rate_of(const ReduceShape& shape) {
  Rig rig(at_full_rate(16 << 20));
  const double rate = measure_rate(rig, shape, submit);
  expect_success(rig, rig.ends().size());
  return rate;
}
ReduceShape shape_of(std::uint32_t sources, std::uint32_t destinations, std::uint64_t bytes,
                     std::uint32_t type, std::uint32_t out_type, bool aligned) {
  return {sources, destinations, bytes, type, out_type, size_of(type), size_of(out_type), aligned};
}

TEST(Reduce, SustainsTheRateOfTheBusierPort) {
  for (const bool aligned : {true, false})
    for (const std::uint32_t n : {1u, 2u, 4u, 8u, 16u, 64u}) {
      const double small = rate_of(shape_of(n, 1, 4 << 10, 3, 3, aligned));
      const double large = rate_of(shape_of(n, 1, 64 << 10, 3, 3, aligned));
      std::printf("%s, n = %2u: %.4f at 4 KiB, %.4f at 64 KiB\n", aligned ? "aligned" : "any byte",
                  n, small, large);
      EXPECT_GE(small, 0.90);
      EXPECT_GE(large, 0.95);
    }
  // Limited by the writes: several destinations, elements that grow.
  for (const bool aligned : {true, false}) {
    EXPECT_GE(rate_of(shape_of(1, 3, 64 << 10, 3, 3, aligned)), 0.95);
    EXPECT_GE(rate_of(shape_of(2, 3, 64 << 10, 3, 3, aligned)), 0.95);
    EXPECT_GE(rate_of(shape_of(1, 1, 64 << 10, 1, 3, aligned)), 0.95);
    EXPECT_GE(rate_of(shape_of(1, 2, 4 << 10, 1, 6, aligned)), 0.90);
  }
  // And by the reads, of elements that shrink.
  EXPECT_GE(rate_of(shape_of(1, 1, 64 << 10, 3, 1, false)), 0.95);
}

// Sources of a few bytes inside a beat, each with a burst of its own.
TEST(Reduce, TakesASmallSourceEveryCycle) {
  ReduceRigConfig config = at_full_rate(1 << 20);
  config.axi.read_latency = 16;
  Rig rig(config);
  constexpr std::size_t kJobs = 30;
  constexpr std::size_t kSources = 64;
  for (std::size_t i = 0; i < kJobs; ++i) {
    ReduceJob job;
    job.type = job.out_type = kTypes[2];
    job.count = 5;
    for (std::size_t s = 0; s < kSources; ++s)
      job.src.push_back(64 * rig.random().below(8000) + 1 + rig.random().below(40));
    job.dst = {(1 << 19) + 1000 * i};
    submit(rig, job);
  }
  ASSERT_TRUE(rig.run(100000));
  expect_success(rig, kJobs);
  const std::uint64_t cycles = rig.ends()[kJobs - 1].cycle - rig.ends()[5].cycle;
  EXPECT_LE(cycles, (kJobs - 6) * (kSources + 4));
}

}  // namespace
}  // namespace penstock::rtl
