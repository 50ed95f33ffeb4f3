// REDUCE as a function, against the engine `scalar`: every type, operation and conversion, operands
// that begin and end on any byte, in place, several destinations; and the depths of its streams.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/host_engine.h"
#include "penstock/engine/scalar_reduce.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/hls/penstock_hls.h"

namespace penstock {
namespace {

constexpr std::uint32_t kSupported[] = {
    PENSTOCK_INT8, PENSTOCK_UINT8, PENSTOCK_INT32, PENSTOCK_UINT32, PENSTOCK_INT64, PENSTOCK_UINT64,
    PENSTOCK_F16,  PENSTOCK_F32,   PENSTOCK_BF16,  PENSTOCK_F8E4M3, PENSTOCK_F8E5M2};

bool is_float(std::uint32_t type) { return penstock_fold_type(type, 0) == PENSTOCK_F32; }

struct Job {
  std::uint32_t type = PENSTOCK_F32, redop = PENSTOCK_SUM, out_type = PENSTOCK_F32;
  std::uint32_t n_src = 2, n_dst = 1;
  std::uint64_t count = 1;
  std::uint64_t scale = 0;
  std::uint32_t shift = 0;    // bytes before the first operand in its line
  std::uint32_t stagger = 0;  // more for each operand
  bool in_place = false;      // destination 0 is source 0
};

std::string text_of(const Job& job) {
  return std::string(penstock_type_name(job.type)) + " " + penstock_redop_name(job.redop) + " to " +
         penstock_type_name(job.out_type) + ", " + std::to_string(job.n_src) + " sources, " +
         std::to_string(job.n_dst) + " destinations, " + std::to_string(job.count) +
         " elements, shift " + std::to_string(job.shift) + " and " + std::to_string(job.stagger);
}

// A pool with random bytes, operands in it, and what scalar makes of a copy of it.
class Pool {
 public:
  Pool(const Job& job, std::uint64_t seed) : job_(job) {
    const std::uint64_t in = penstock_operand_bytes(job.type, 0, job.count);
    const std::uint64_t out = penstock_operand_bytes(job.out_type, 0, job.count);
    std::uint64_t at = 64;
    const auto place = [&](std::uint64_t bytes, std::uint32_t index) {
      const std::uint64_t here = at + (job.shift + job.stagger * index) % 64;
      at = (here + bytes + 63) / 64 * 64 + 64;
      return here;
    };
    for (std::uint32_t s = 0; s < job.n_src; ++s) sources_.push_back(place(in, s));
    for (std::uint32_t d = 0; d < job.n_dst; ++d)
      destinations_.push_back(job.in_place && d == 0 ? sources_[0] : place(out, 70 + d));
    destinations_.resize(3);
    lines_.resize(at / 64 + 1);
    SeededRandom random(seed);
    for (Line& line : lines_)
      for (std::uint64_t& piece : line.pieces) piece = random.next();
    make_plausible(random);
  }

  // Random bits are seldom close to one another as floats.
  void make_plausible(SeededRandom& random) {
    if (job_.type != PENSTOCK_F32) return;
    for (const std::uint64_t source : sources_) {
      for (std::uint64_t i = 0; i < job_.count; ++i) {
        std::uint32_t bits = static_cast<std::uint32_t>(random.next());
        if (random.below(4) != 0) bits = (bits & 0x80ffffffu) | 0x3f000000u;
        std::memcpy(bytes() + source + i * 4, &bits, 4);
      }
    }
  }

  std::byte* bytes() { return reinterpret_cast<std::byte*>(lines_.data()); }
  std::uint64_t size() const { return lines_.size() * sizeof(Line); }

  void run_kernel() {
    penstock_hls_reduce(penstock_hls::WordPort(bytes()), penstock_hls::WordPort(bytes()),
                        reinterpret_cast<std::uint8_t*>(bytes()), sources_.data(), destinations_[0],
                        destinations_[1], destinations_[2], job_.count, job_.scale, job_.type,
                        job_.redop, job_.out_type, job_.n_src, job_.n_dst);
  }
  void run_scalar() {
    std::vector<const void*> src;
    std::vector<void*> dst;
    for (const std::uint64_t source : sources_) src.push_back(bytes() + source);
    for (const std::uint64_t destination : destinations_) dst.push_back(bytes() + destination);
    ReduceArguments a{job_.type,  job_.redop, job_.n_src, job_.n_dst,
                      src.data(), dst.data(), job_.count, job_.scale};
    a.out_type = job_.out_type;
    scalar_reduce(a);
  }

 private:
  struct alignas(64) Line {
    std::uint64_t pieces[8];
  };
  Job job_;
  std::vector<Line> lines_;
  std::vector<std::uint64_t> sources_, destinations_;
};

void compare(const Job& job, std::uint64_t seed) {
  Pool expected(job, seed);
  Pool actual(job, seed);
  expected.run_scalar();
  actual.run_kernel();
  // All of the pool: what is beside the destinations keeps its bytes.
  for (std::uint64_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(expected.bytes()[i], actual.bytes()[i]) << text_of(job) << ", byte " << i;
}

std::uint64_t some_scale(const Job& job) {
  if (job.redop != PENSTOCK_PREMUL_SUM) return 0;
  return is_float(job.type) ? 0x3fa147ae : 0xfffffffffffffff3u;  // 1.26, -13
}

TEST(HlsReduce, EveryTypeOperationAndConversion) {
  std::uint64_t seed = 1;
  for (const std::uint32_t type : kSupported)
    for (const std::uint32_t out_type : kSupported) {
      if (type != out_type && !(is_float(type) && is_float(out_type))) continue;
      for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop)
        for (const std::uint32_t n_src : {1u, 2u, 3u, 7u}) {
          Job job;
          job.type = type;
          job.out_type = out_type;
          job.redop = redop;
          job.n_src = n_src;
          job.scale = some_scale(job);
          job.count = 150 + seed % 7;
          job.shift = static_cast<std::uint32_t>(seed * 5);
          job.stagger = static_cast<std::uint32_t>(seed % 3);
          ASSERT_NO_FATAL_FAILURE(compare(job, seed++));
        }
    }
}

TEST(HlsReduce, EveryAlignmentAndLength) {
  std::uint64_t seed = 1000;
  for (std::uint32_t shift = 0; shift < 64; ++shift)
    for (const std::uint64_t count : {1, 2, 63, 64, 65, 127, 200}) {
      Job job;
      job.type = job.out_type = PENSTOCK_UINT8;
      job.count = count;
      job.shift = shift;
      job.stagger = shift * 7 % 5;
      job.n_src = 1 + shift % 3;
      job.n_dst = 1 + (shift + static_cast<std::uint32_t>(count)) % 3;
      ASSERT_NO_FATAL_FAILURE(compare(job, seed++));
    }
}

TEST(HlsReduce, ManyChunks) {
  std::uint64_t seed = 2000;
  for (const std::uint32_t type : {PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_F8E5M2, PENSTOCK_INT64})
    for (const std::uint32_t out_type :
         {type, std::uint32_t{PENSTOCK_F32}, std::uint32_t{PENSTOCK_F8E4M3}}) {
      if (type == PENSTOCK_INT64 && out_type != type) continue;
      for (const std::uint32_t shift : {0u, 20u}) {
        for (const std::uint64_t bytes : {4096, 8192, 12288 + 8, 20000}) {
          Job job;
          job.type = type;
          job.out_type = out_type;
          job.count = bytes / penstock_type_size(type);
          job.shift = shift;
          job.stagger = shift != 0 ? 4 : 0;
          job.n_src = 3;
          job.n_dst = 1 + static_cast<std::uint32_t>(seed % 3);
          ASSERT_NO_FATAL_FAILURE(compare(job, seed++));
        }
      }
    }
}

TEST(HlsReduce, EveryNumberOfSources) {
  for (std::uint32_t n = 1; n <= 64; ++n)
    for (const std::uint32_t type :
         {PENSTOCK_INT8, PENSTOCK_INT32, PENSTOCK_UINT64, PENSTOCK_F16}) {
      Job job;
      job.type = job.out_type = type;
      job.redop = PENSTOCK_AVG;
      job.n_src = n;
      job.count = 45;
      ASSERT_NO_FATAL_FAILURE(compare(job, 3000 + n));
    }
}

TEST(HlsReduce, ADestinationMayBeASource) {
  for (const std::uint32_t shift : {0u, 4u, 37u}) {
    Job job;
    job.count = 3000;
    job.shift = shift;
    job.in_place = true;
    job.n_src = 3;
    job.n_dst = 2;
    ASSERT_NO_FATAL_FAILURE(compare(job, 4000 + shift));
  }
}

TEST(HlsReduce, WhatIsNotTakenTouchesNothing) {
  Job job;
  job.type = job.out_type = PENSTOCK_F64;
  Pool before(job, 5), after(job, 5);
  after.run_kernel();
  EXPECT_EQ(std::memcmp(before.bytes(), after.bytes(), before.size()), 0);
  EXPECT_FALSE(penstock_hls_reduce_takes(PENSTOCK_F64, PENSTOCK_SUM, PENSTOCK_F64, 2, 1));
  EXPECT_FALSE(penstock_hls_reduce_takes(PENSTOCK_INT8, PENSTOCK_SUM, PENSTOCK_F32, 2, 1));
  EXPECT_FALSE(penstock_hls_reduce_takes(PENSTOCK_F32, PENSTOCK_SUM, PENSTOCK_INT8, 2, 1));
  EXPECT_FALSE(penstock_hls_reduce_takes(PENSTOCK_F32, PENSTOCK_REDOP_COUNT, PENSTOCK_F32, 2, 1));
  EXPECT_FALSE(penstock_hls_reduce_takes(PENSTOCK_F32, PENSTOCK_SUM, PENSTOCK_F32, 65, 1));
  EXPECT_FALSE(penstock_hls_reduce_takes(PENSTOCK_F32, PENSTOCK_SUM, PENSTOCK_F32, 0, 1));
  EXPECT_FALSE(penstock_hls_reduce_takes(PENSTOCK_F32, PENSTOCK_SUM, PENSTOCK_F32, 2, 4));
  EXPECT_FALSE(penstock_hls_reduce_takes(99, PENSTOCK_SUM, 99, 2, 1));
}

// Each stage in a thread of its own, each stream with the depth that it declares: what would stand
// still in hardware stands still here, and a stream of bursts reaches what is asked for ahead.
TEST(HlsReduce, StreamsAreDeepEnough) {
  penstock_hls_plain::set_concurrent(true);
  std::uint64_t seed = 6000;
  for (const std::uint32_t out_type : {PENSTOCK_F32, PENSTOCK_F8E4M3})
    for (const std::uint32_t type : {PENSTOCK_F32, PENSTOCK_F8E5M2})
      for (const std::uint32_t n_src : {1u, 2u, 17u, 64u})
        for (const std::uint64_t count : {1, 40, 2100}) {
          Job job;
          job.type = type;
          job.out_type = out_type;
          job.n_src = n_src;
          job.n_dst = 1 + static_cast<std::uint32_t>(seed % 3);
          job.count = count;
          job.shift = seed % 2 == 0 ? 0 : 12;
          job.stagger = seed % 2 == 0 ? 0 : 4;
          compare(job, seed++);
          if (HasFatalFailure()) break;
        }
  penstock_hls_plain::set_concurrent(false);
  EXPECT_EQ(penstock_hls_plain::fills().by_name.size(), 13u);
  for (const auto& [name, fill] : penstock_hls_plain::fills().by_name) {
    RecordProperty(name, std::to_string(fill.most) + " of " + std::to_string(fill.depth));
    EXPECT_LE(fill.most, fill.depth) << name;
    EXPECT_GE(fill.most, 1u) << name;
  }
}

}  // namespace
}  // namespace penstock
