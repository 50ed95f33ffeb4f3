// Jobs of every type and operation through the fold, against the definition of REDUCE in
// host/engine; and how many cycles they take.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "Vpenstock_fold.h"
#include "penstock/descriptor/types.h"
#include "penstock/engine/scalar_reduce.h"
#include "penstock/rtl/common/clocked_test.h"

namespace penstock::rtl {
namespace {

constexpr std::size_t kBeat = 64;
using Bytes = std::vector<std::uint8_t>;

struct Job {
  std::uint32_t type = PENSTOCK_F32;
  std::uint32_t redop = PENSTOCK_SUM;
  std::uint32_t out_type = PENSTOCK_F32;
  std::uint32_t n_src = 2;
  std::uint64_t count = 16;  // elements; bytes of a copy
  std::uint64_t scale = 0;
  bool copy = false;
  unsigned chunk_beats = 64;  // of all chunks but the last
};

std::string describe(const Job& job) {
  return std::string(job.copy ? "copy of " : penstock_redop_name(job.redop)) + " " +
         penstock_type_name(job.type) + " -> " + penstock_type_name(job.out_type) + ", n_src " +
         std::to_string(job.n_src) + ", count " + std::to_string(job.count) + ", chunk_beats " +
         std::to_string(job.chunk_beats);
}

std::size_t size_of(const Job& job) { return job.copy ? 1 : penstock_type_size(job.type); }
std::size_t out_size_of(const Job& job) { return job.copy ? 1 : penstock_type_size(job.out_type); }

bool is_float(std::uint32_t type) { return type > PENSTOCK_UINT64; }

struct InBeat {
  std::array<std::uint8_t, kBeat> data;
  std::uint8_t index;
  bool last;
  bool first_source;
  bool last_source;
  const Job* job;
};
struct OutBeat {
  std::array<std::uint8_t, kBeat> data;
  std::size_t bytes;  // that belong to the result
  bool last;
  const Job* job;
};

// What goes in and has to come out, in order.
struct Traffic {
  std::vector<InBeat> in;
  std::vector<OutBeat> out;
};

void append(Traffic& traffic, const Job& job, const std::vector<Bytes>& sources) {
  Bytes result(job.count * out_size_of(job));
  if (job.copy) {
    result = sources[0];
  } else {
    std::vector<const void*> src;
    for (const Bytes& source : sources) src.push_back(source.data());
    void* dst = result.data();
    scalar_reduce({.type = job.type,
                   .redop = job.redop,
                   .n_src = job.n_src,
                   .n_dst = 1,
                   .src = src.data(),
                   .dst = &dst,
                   .count = job.count,
                   .scale = job.scale,
                   .out_type = job.out_type});
  }
  const std::size_t size = size_of(job);
  const std::size_t out_size = out_size_of(job);
  const std::size_t bytes = job.count * size;
  const std::size_t chunk = job.chunk_beats * kBeat;
  for (std::size_t first = 0; first < bytes; first += chunk) {
    const std::size_t beats = (std::min(chunk, bytes - first) + kBeat - 1) / kBeat;
    for (std::uint32_t s = 0; s < job.n_src; ++s) {
      for (std::size_t beat = 0; beat < beats; ++beat) {
        InBeat in{
            {},  static_cast<std::uint8_t>(beat), beat + 1 == beats, s == 0, s + 1 == job.n_src,
            &job};
        const std::size_t at = first + beat * kBeat;
        in.data.fill(0xa5);  // beyond the last element
        std::memcpy(in.data.data(), &sources[s][at], std::min(kBeat, bytes - at));
        traffic.in.push_back(in);
      }
    }
    const std::size_t out_first = first / size * out_size;
    const std::size_t out_beats = (beats * kBeat / size * out_size + kBeat - 1) / kBeat;
    const std::size_t out_chunk = beats * kBeat / size * out_size;
    for (std::size_t beat = 0; beat < out_beats; ++beat) {
      const std::size_t at = out_first + beat * kBeat;
      const std::size_t end = std::min(result.size(), out_first + out_chunk);
      OutBeat out{{}, at < end ? std::min(kBeat, end - at) : 0, beat + 1 == out_beats, &job};
      if (out.bytes != 0) std::memcpy(out.data.data(), &result[at], out.bytes);
      traffic.out.push_back(out);
    }
  }
}

// ---- Numbers to fold ----------------------------------------------------------------------------

struct Format {
  unsigned exponent_bits;
  unsigned fraction_bits;
};
Format format_of(std::uint32_t type) {
  switch (type) {
    case PENSTOCK_F16:
      return {5, 10};
    case PENSTOCK_BF16:
      return {8, 7};
    case PENSTOCK_F8E4M3:
      return {4, 3};
    case PENSTOCK_F8E5M2:
      return {5, 2};
    default:
      return {8, 23};
  }
}

// style 0: any bits; 1: numbers near one, so that sums and products stay finite; 2: zeros,
// subnormals, infinities, NaNs and numbers near the largest one among others.
std::uint64_t element(std::uint32_t type, unsigned style, std::mt19937_64& random) {
  const std::uint64_t bits = random();
  if (!is_float(type) || style == 0) return bits;
  const auto [exponent_bits, fraction_bits] = format_of(type);
  const std::uint64_t sign = (bits >> 63) << (exponent_bits + fraction_bits);
  const std::uint64_t fraction = bits & ((1ULL << fraction_bits) - 1);
  const std::uint64_t ones = (1ULL << exponent_bits) - 1;
  std::uint64_t exponent = ones / 2 - 1 + (bits >> 40) % 3;
  if (style == 2) {
    switch (bits >> 50 & 15) {
      case 0:
        return sign;
      case 1:
        return sign | ones << fraction_bits;
      case 2:
        exponent = ones;
        break;
      case 3:
      case 4:
      case 5:
        exponent = 0;
        break;
      case 6:
        exponent = ones - 1;
        break;
      case 7:
        exponent = 1;
        break;
      default:
        break;
    }
  }
  return sign | exponent << fraction_bits | fraction;
}

std::vector<Bytes> random_sources(const Job& job, std::mt19937_64& random) {
  std::vector<Bytes> sources;
  for (std::uint32_t s = 0; s < job.n_src; ++s) {
    const std::size_t size = size_of(job);
    Bytes source(job.count * size);
    const unsigned style = random() % 3;
    for (std::size_t i = 0; i < job.count; ++i) {
      const std::uint64_t value = job.copy ? random() : element(job.type, style, random);
      std::memcpy(&source[i * size], &value, size);
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

std::uint64_t random_scale(const Job& job, std::mt19937_64& random) {
  if (job.copy || job.redop != PENSTOCK_PREMUL_SUM) return random();  // must not matter
  return is_float(job.type) ? element(PENSTOCK_F32, random() % 3, random) & 0xffffffff : random();
}

// ---- The rig ------------------------------------------------------------------------------------

struct Pace {
  unsigned in_percent = 100;   // cycles in which a beat is offered
  unsigned out_percent = 100;  // cycles in which one is taken
};

struct Counts {
  std::uint64_t cycles = 0;
  std::uint64_t compared = 0;  // bytes
};

using Fold = Clocked<Vpenstock_fold>;

void garbage(Fold& fold) {
  for (int w = 0; w < 16; ++w) fold->in_data_i[w] = static_cast<std::uint32_t>(fold.random());
  const std::uint64_t bits = fold.random();
  fold->in_index_i = bits & 63;
  fold->in_last_i = bits >> 6 & 1;
  fold->in_first_source_i = bits >> 7 & 1;
  fold->in_last_source_i = bits >> 8 & 1;
  fold->in_type_i = bits >> 9 & 15;
  fold->in_redop_i = bits >> 13 & 7;
  fold->in_out_type_i = bits >> 16 & 15;
  fold->in_sources_i = bits >> 20 & 127;
  fold->in_scale_i = fold.random();
  fold->in_copy_i = bits >> 27 & 1;
}

void offer(Fold& fold, const InBeat& beat) {
  std::memcpy(&fold->in_data_i, beat.data.data(), kBeat);
  fold->in_index_i = beat.index;
  fold->in_last_i = beat.last;
  fold->in_first_source_i = beat.first_source;
  fold->in_last_source_i = beat.last_source;
  fold->in_copy_i = beat.job->copy;
  // A copy says nothing about types.
  const std::uint64_t bits = fold.random();
  fold->in_type_i = beat.job->copy ? bits & 15 : beat.job->type;
  fold->in_redop_i = beat.job->copy ? bits >> 4 & 7 : beat.job->redop;
  fold->in_out_type_i = beat.job->copy ? bits >> 7 & 15 : beat.job->out_type;
  fold->in_sources_i = static_cast<std::uint8_t>(beat.job->n_src);
  fold->in_scale_i = beat.job->scale;
}

void start(Fold& fold) {
  fold->in_valid_i = 0;
  fold->out_ready_i = 0;
  garbage(fold);
  fold.reset();
}

// Sends the traffic and compares what comes. Gives up where nothing has moved for too long.
Counts run(Fold& fold, const Traffic& traffic, const Pace& pace) {
  Counts counts;
  std::size_t sent = 0;
  std::size_t received = 0;
  unsigned idle = 0;
  bool offered = false;
  while (received < traffic.out.size()) {
    if (!offered) {
      garbage(fold);
      offered = sent < traffic.in.size() && fold.chance(pace.in_percent);
      if (offered) offer(fold, traffic.in[sent]);
    }
    fold->in_valid_i = offered;
    fold->out_ready_i = fold.chance(pace.out_percent);
    fold.eval();
    ++idle;
    if (fold->out_valid_o && fold->out_ready_i) {
      const OutBeat& want = traffic.out[received];
      Bytes got(kBeat);
      std::memcpy(got.data(), &fold->out_data_o, kBeat);
      for (std::size_t i = 0; i < want.bytes; ++i) {
        if (got[i] != want.data[i]) {
          ADD_FAILURE() << describe(*want.job) << ": beat " << received << " of the result, byte "
                        << i << " is " << int{got[i]} << " instead of " << int{want.data[i]};
          return counts;
        }
      }
      EXPECT_EQ(fold->out_last_o, want.last) << describe(*want.job) << ": beat " << received;
      counts.compared += want.bytes;
      ++received;
      idle = 0;
    }
    if (offered && fold->in_ready_o) {
      offered = false;
      ++sent;
      idle = 0;
    }
    if (idle > 2000) {
      ADD_FAILURE() << "nothing moves: " << sent << " of " << traffic.in.size() << " beats taken, "
                    << received << " of " << traffic.out.size() << " given";
      return counts;
    }
    fold.tick();
    ++counts.cycles;
  }
  EXPECT_EQ(sent, traffic.in.size());
  fold->in_valid_i = 0;
  for (int i = 0; i < 200; ++i) {
    fold->out_ready_i = 1;
    fold.eval();
    if (fold->out_valid_o) ADD_FAILURE() << "a beat that nobody expects";
    fold.tick();
  }
  return counts;
}

// ---- Which jobs there are -----------------------------------------------------------------------

constexpr std::array<std::uint32_t, 5> kFloats = {PENSTOCK_F16, PENSTOCK_F32, PENSTOCK_BF16,
                                                  PENSTOCK_F8E4M3, PENSTOCK_F8E5M2};
constexpr std::array<std::uint32_t, 6> kIntegers = {PENSTOCK_INT8,  PENSTOCK_UINT8,
                                                    PENSTOCK_INT32, PENSTOCK_UINT32,
                                                    PENSTOCK_INT64, PENSTOCK_UINT64};

struct Types {
  std::uint32_t in;
  std::uint32_t out;
};
std::vector<Types> all_types() {
  std::vector<Types> types;
  for (const std::uint32_t type : kIntegers) types.push_back({type, type});
  for (const std::uint32_t in : kFloats)
    for (const std::uint32_t out : kFloats) types.push_back({in, out});
  return types;
}

Job random_job(std::mt19937_64& random) {
  static const std::vector<Types> kTypes = all_types();
  Job job;
  job.copy = random() % 12 == 0;
  const Types types = kTypes[random() % kTypes.size()];
  job.type = types.in;
  job.out_type = types.out;
  job.redop = random() % PENSTOCK_REDOP_COUNT;
  const std::array<std::uint32_t, 8> sources = {1, 1, 2, 2, 3, 4, 5, 64};
  job.n_src = sources[random() % sources.size()];
  job.chunk_beats = random() % 3 == 0 ? 1 + random() % 64 : 1 + random() % 12;
  const std::size_t chunks = 1 + random() % (job.n_src > 5 ? 1 : 3);
  if (job.copy) {
    job.n_src = 1;
    job.type = job.out_type = PENSTOCK_UINT8;
  }
  const std::size_t in_chunk = job.chunk_beats * kBeat / size_of(job);
  job.count = 1 + random() % (chunks * in_chunk);
  if (random() % 4 == 0) job.count = chunks * in_chunk;
  job.scale = random_scale(job, random);
  return job;
}

void run_jobs(unsigned seed, std::vector<Job> jobs, const Pace& pace, std::uint64_t* compared) {
  Fold fold(seed);
  start(fold);
  Traffic traffic;
  for (const Job& job : jobs) append(traffic, job, random_sources(job, fold.random));
  *compared += run(fold, traffic, pace).compared;
}

// ---- Tests --------------------------------------------------------------------------------------

// Each type and conversion with each operation, one by one.
TEST(Fold, EveryTypeAndOperationHasTheBitsOfTheDefinition) {
  std::uint64_t compared = 0;
  unsigned seed = 0;
  std::mt19937_64 random(7);
  for (const Types types : all_types()) {
    std::vector<Job> jobs;
    for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop) {
      for (const std::uint32_t n_src : {1U, 2U, 3U, 8U}) {
        Job job{.type = types.in, .redop = redop, .out_type = types.out, .n_src = n_src};
        job.count = (n_src == 8 ? 3 : 20) * kBeat / size_of(job);
        job.scale = random_scale(job, random);
        jobs.push_back(job);
      }
    }
    run_jobs(++seed, jobs, {}, &compared);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 500000U);
}

TEST(Fold, IntegersAreDividedByEveryNumberOfSources) {
  std::uint64_t compared = 0;
  for (const std::uint32_t type : kIntegers) {
    std::vector<Job> jobs;
    for (std::uint32_t n = 2; n <= 64; ++n) {
      Job job{.type = type, .redop = PENSTOCK_AVG, .out_type = type, .n_src = n};
      job.count = 2 * kBeat / size_of(job);
      jobs.push_back(job);
    }
    run_jobs(type, jobs, {}, &compared);
    if (HasFailure()) return;
  }
  EXPECT_EQ(compared, 6U * 63 * 2 * kBeat);
}

TEST(Fold, FloatsAreAveragedOverEveryNumberOfSources) {
  std::uint64_t compared = 0;
  std::vector<Job> jobs;
  for (std::uint32_t n = 2; n <= 64; ++n)
    jobs.push_back({.redop = PENSTOCK_AVG, .n_src = n, .count = 32});
  run_jobs(3, jobs, {}, &compared);
  EXPECT_EQ(compared, 63U * 2 * kBeat);
}

// Jobs of all kinds after one another, with gaps and back-pressure.
TEST(Fold, RandomJobsAtAnyPace) {
  std::uint64_t compared = 0;
  constexpr std::array<Pace, 6> kPaces = {
      {{100, 100}, {100, 30}, {40, 100}, {60, 60}, {100, 5}, {90, 95}}};
  for (unsigned seed = 0; seed < PENSTOCK_FOLD_SEEDS; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Job> jobs;
    for (int i = 0; i < 60; ++i) jobs.push_back(random_job(random));
    run_jobs(seed, jobs, kPaces[seed % kPaces.size()], &compared);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(compared, PENSTOCK_FOLD_SEEDS * 20000U);
}

// A beat goes in, or comes out, in every cycle, whichever of the two is the more.
TEST(Fold, MovesABeatInEveryCycle) {
  std::uint64_t jobs = 0;
  for (const Types types : all_types()) {
    for (const std::uint32_t redop :
         {PENSTOCK_SUM, PENSTOCK_PROD, PENSTOCK_AVG, PENSTOCK_PREMUL_SUM}) {
      for (const std::uint32_t n_src : {1U, 2U, 4U}) {
        Job job{.type = types.in, .redop = redop, .out_type = types.out, .n_src = n_src};
        job.count = 10 * 64 * kBeat / size_of(job);
        Fold fold(1);
        start(fold);
        Traffic traffic;
        append(traffic, job, random_sources(job, fold.random));
        const Counts counts = run(fold, traffic, {});
        const std::size_t limit = std::max(traffic.in.size(), traffic.out.size());
        // At the ends the first chunk goes in, and the last comes out, alone.
        EXPECT_LE(counts.cycles, limit + limit / 40 + 64 * n_src + 64) << describe(job);
        if (HasFailure()) return;
        ++jobs;
      }
    }
  }
  EXPECT_EQ(jobs, 31U * 12);
}

// Cycles from the one in which the first beat is taken to the one in which the result is, both
// counted.
TEST(Fold, TakesAFewCyclesForASmallJob) {
  struct Case {
    Job job;
    std::uint64_t cycles;
  };
  const std::array<Case, 6> cases = {{
      {{.n_src = 1, .count = 16}, 7},
      {{.type = PENSTOCK_F32, .out_type = PENSTOCK_BF16, .n_src = 1, .count = 32}, 10},
      {{.n_src = 2, .count = 16}, 13},
      {{.redop = PENSTOCK_AVG, .n_src = 2, .count = 16}, 17},
      {{.type = PENSTOCK_INT32, .out_type = PENSTOCK_INT32, .n_src = 2, .count = 16}, 10},
      {{.type = PENSTOCK_INT32,
        .redop = PENSTOCK_AVG,
        .out_type = PENSTOCK_INT32,
        .n_src = 2,
        .count = 16},
       28},
  }};
  for (const Case& c : cases) {
    Fold fold(1);
    start(fold);
    Traffic traffic;
    append(traffic, c.job, random_sources(c.job, fold.random));
    EXPECT_EQ(run(fold, traffic, {}).cycles, c.cycles) << describe(c.job);
  }
}

// Whatever was inside is forgotten.
TEST(Fold, ResetInTheMiddleLeavesNothing) {
  std::uint64_t compared = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    Fold fold(seed);
    start(fold);
    for (int round = 0; round < 4; ++round) {
      const Job job = random_job(fold.random);
      Traffic traffic;
      append(traffic, job, random_sources(job, fold.random));
      std::size_t sent = 0;
      const std::size_t stop = 1 + fold.random() % traffic.in.size();
      for (int cycle = 0; cycle < 3000 && sent < stop; ++cycle) {
        offer(fold, traffic.in[sent]);
        fold->in_valid_i = 1;
        fold->out_ready_i = fold.chance(30);
        fold.eval();
        sent += fold->in_ready_o;
        fold.tick();
      }
      start(fold);
      const Job next = random_job(fold.random);
      Traffic after;
      append(after, next, random_sources(next, fold.random));
      compared += run(fold, after, {}).compared;
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
  }
  EXPECT_GT(compared, 10000U);
}

}  // namespace
}  // namespace penstock::rtl
