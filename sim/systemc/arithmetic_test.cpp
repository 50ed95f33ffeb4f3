#include "penstock/sim/systemc/arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>

#include "penstock/engine/host_engine.h"
#include "penstock/engine/numeric.h"

namespace penstock::systemc {
namespace {

constexpr std::uint32_t kNarrow[] = {PENSTOCK_F16, PENSTOCK_BF16, PENSTOCK_F8E4M3, PENSTOCK_F8E5M2};

float engine_widen(std::uint32_t type, std::uint32_t code) {
  switch (type) {
    case PENSTOCK_F16:
      return numeric::widen<numeric::F16>(code);
    case PENSTOCK_BF16:
      return numeric::widen<numeric::Bf16>(code);
    case PENSTOCK_F8E4M3:
      return numeric::widen<numeric::F8e4m3>(code);
    default:
      return numeric::widen<numeric::F8e5m2>(code);
  }
}
std::uint32_t engine_narrow(std::uint32_t type, float value) {
  switch (type) {
    case PENSTOCK_F16:
      return numeric::narrow<numeric::F16>(value);
    case PENSTOCK_BF16:
      return numeric::narrow<numeric::Bf16>(value);
    case PENSTOCK_F8E4M3:
      return numeric::narrow<numeric::F8e4m3>(value);
    default:
      return numeric::narrow<numeric::F8e5m2>(value);
  }
}

TEST(Arithmetic, WidensEveryCode) {
  for (const std::uint32_t type : kNarrow) {
    const std::uint32_t codes = 1u << (8 * Fold::element_bytes(type));
    for (std::uint32_t code = 0; code < codes; ++code) {
      float expected = engine_widen(type, code);
      // A NaN of bf16 keeps its bits there; the card makes it canonical at once, and the engine
      // when it stores.
      if (expected != expected) expected = std::bit_cast<float>(numeric::kNanF32);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(widen(type, code)),
                std::bit_cast<std::uint32_t>(expected))
          << penstock_type_name(type) << " code " << code;
    }
  }
}

TEST(Arithmetic, NarrowsEveryExponentAtItsTies) {
  for (const std::uint32_t type : kNarrow) {
    for (std::uint32_t top = 0; top < 1u << 16; ++top) {
      for (const std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
        const float value = std::bit_cast<float>(top << 16 | low);
        ASSERT_EQ(narrow(type, value), engine_narrow(type, value))
            << penstock_type_name(type) << " bits " << (top << 16 | low);
      }
    }
  }
}

TEST(Arithmetic, NarrowsRandomBits) {
  std::mt19937 random(7);
  for (int i = 0; i < 1000000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    for (const std::uint32_t type : kNarrow)
      ASSERT_EQ(narrow(type, value), engine_narrow(type, value)) << penstock_type_name(type);
  }
}

// ---- folds against the scalar kernels ----

struct Case {
  std::uint32_t type, out_type, redop, sources;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto in_f32 = [](std::uint32_t type) {
    return penstock_fold_type(type, 0) == PENSTOCK_F32;
  };
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    if (type == PENSTOCK_F64) continue;
    for (std::uint32_t out = 0; out < PENSTOCK_TYPE_COUNT; ++out) {
      if (out != type && !(in_f32(type) && in_f32(out))) continue;
      for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop)
        for (const std::uint32_t sources : {1u, 2u, 3u, 7u, 64u})
          all.push_back({type, out, redop, sources});
    }
  }
  return all;
}

// Anything, with special values of floats among it.
void fill(std::mt19937_64& random, std::uint32_t type, std::vector<std::uint8_t>* bytes) {
  const bool special = random() % 2 == 0;
  for (std::size_t i = 0; i < bytes->size(); i += 8) {
    std::uint64_t word = random();
    if (special && type == PENSTOCK_F32)
      word &= random() % 3 == 0 ? 0x80000000ff800000u : 0x8fffffff9fffffffu;
    if (special && type != PENSTOCK_F32) word &= random();
    std::memcpy(bytes->data() + i, &word, std::min<std::size_t>(8, bytes->size() - i));
  }
}

std::uint64_t scale_of(std::mt19937_64& random, const Case& c) {
  if (c.redop != PENSTOCK_PREMUL_SUM) return 0;
  if (penstock_fold_type(c.type, 0) != PENSTOCK_F32) return random();
  return std::bit_cast<std::uint32_t>(static_cast<float>(random() % 1000) * 0.01f - 3);
}

TEST(Fold, EqualsTheScalarKernels) {
  const std::unique_ptr<const Kernels> kernels = scalar_kernels();
  std::mt19937_64 random(11);
  std::uint64_t compared = 0;
  for (const Case& c : cases()) {
    const std::uint32_t bytes = Fold::element_bytes(c.type);
    ASSERT_EQ(bytes, penstock_type_size(c.type));
    const std::uint32_t elements = 1 + static_cast<std::uint32_t>(random() % 300);
    std::vector<std::vector<std::uint8_t>> sources(c.sources);
    std::vector<const void*> pointers;
    for (auto& source : sources) {
      source.resize(std::size_t{elements} * bytes);
      fill(random, c.type, &source);
      pointers.push_back(source.data());
    }
    const std::uint64_t scale = scale_of(random, c);
    std::vector<std::uint8_t> expected(std::size_t{elements} * penstock_type_size(c.out_type));
    void* destination = expected.data();
    ReduceArguments arguments{c.type,          c.redop,      c.sources, 1,
                              pointers.data(), &destination, elements,  scale};
    arguments.out_type = c.out_type;
    kernels->reduce(arguments);

    Fold fold({c.type, c.redop, c.out_type, c.sources, scale});
    for (std::uint32_t s = 0; s < c.sources; ++s) fold.add(s, sources[s].data(), elements);
    std::vector<std::uint8_t> actual(std::size_t{4} * Fold::kChunkBytes);
    actual.resize(fold.finish(actual.data(), elements));
    ASSERT_EQ(actual, expected) << penstock_redop_name(c.redop) << " of " << c.sources << " "
                                << penstock_type_name(c.type) << " to "
                                << penstock_type_name(c.out_type);
    ++compared;
  }
  EXPECT_GT(compared, 900u);
}

}  // namespace
}  // namespace penstock::systemc
