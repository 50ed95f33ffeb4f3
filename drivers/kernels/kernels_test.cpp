// Whole kernels on the host against the scalar engine's: every type, operation, conversion and
// weighting, at every alignment, in place and not, in launches smaller than the work.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "penstock/drivers/kernels/host_kernels.h"
#include "penstock/drivers/kernels/launch.h"
#include "penstock/engine/conformance_operands.h"

namespace penstock::kernels {
namespace {

constexpr u64 kMostBytes = 4096;
constexpr u64 kGuard = 64;

// Operands at chosen distances from an address that is a multiple of 64.
class Operands {
 public:
  explicit Operands(std::size_t n) : memory_(n * kSlot + 64, std::byte{0x5a}) {}
  std::byte* at(std::size_t slot, u64 skew) {
    auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + ((64 - start % 64) % 64) + slot * kSlot + kGuard + skew;
  }
  std::vector<std::byte>& memory() { return memory_; }

 private:
  static constexpr u64 kSlot = kMostBytes + 4 * kGuard;
  std::vector<std::byte> memory_;
};

struct Case {
  u32 type, out_type, redop, block, n_src, n_dst;
  u64 count;
  bool weighted;
  u64 skew[PENSTOCK_MAX_SOURCES + PENSTOCK_MAX_DESTINATIONS];
  bool in_place;
};

void fill(const Case& c, u64 seed, Operands* operands) {
  const conformance::Bits bits =
      conformance::bits_of(c.block != 0 && c.type == PENSTOCK_INT8 ? u32{PENSTOCK_UINT8} : c.type);
  const u64 size = static_cast<u64>(bits.width) / 8;
  for (u32 s = 0; s < c.n_src; ++s) {
    std::byte* to = operands->at(s, c.skew[s]);
    const u64 bytes = penstock_operand_bytes(c.type, c.block, c.count);
    for (u64 i = 0; i < bytes / size; ++i) {
      const u64 value = conformance::element(bits, seed, s, i);
      std::memcpy(to + i * size, &value, size);
    }
    if (c.block == 0 || c.type != PENSTOCK_INT8) continue;
    for (u64 at = 0; at < bytes; at += BLOCK_SCALE_BYTES + c.block) {
      const u64 scale = conformance::element(conformance::bits_of(PENSTOCK_F32), seed, s, at);
      std::memcpy(to + at, &scale, BLOCK_SCALE_BYTES);
    }
  }
}

// Runs the case with the kernels and with the scalar engine, each on operands of its own.
void expect_equal(const Case& c, u64 seed) {
  Operands kernel_side(c.n_src + c.n_dst);
  fill(c, seed, &kernel_side);
  Operands scalar_side(c.n_src + c.n_dst);
  fill(c, seed, &scalar_side);
  f32 weights_f32[PENSTOCK_MAX_SOURCES];
  f64 weights_f64[PENSTOCK_MAX_SOURCES];
  for (u32 s = 0; s < c.n_src; ++s) {
    weights_f64[s] = 1.0 / (3 + s + static_cast<f64>(seed % 7));
    weights_f32[s] = static_cast<f32>(weights_f64[s]);
  }
  const auto run = [&](Operands* operands, bool kernel) {
    const void* src[PENSTOCK_MAX_SOURCES];
    void* dst[PENSTOCK_MAX_DESTINATIONS];
    u64 src_at[PENSTOCK_MAX_SOURCES], dst_at[PENSTOCK_MAX_DESTINATIONS];
    for (u32 s = 0; s < c.n_src; ++s) src_at[s] = address_of(src[s] = operands->at(s, c.skew[s]));
    for (u32 d = 0; d < c.n_dst; ++d)
      dst_at[d] = address_of(dst[d] = c.in_place && d == 0
                                          ? operands->at(c.n_src - 1, c.skew[c.n_src - 1])
                                          : operands->at(c.n_src + d, c.skew[c.n_src + d]));
    ReduceArguments a{c.type, c.redop, c.n_src, c.n_dst, src, dst, c.count, 0};
    a.out_type = c.out_type;
    a.block = c.block;
    if (c.redop == PENSTOCK_PREMUL_SUM) a.scale = conformance::scale_for(c.type, c.redop, seed);
    if (c.weighted) {
      a.scale = 0;
      a.weights = c.type == PENSTOCK_F64 ? static_cast<const void*>(weights_f64) : weights_f32;
    }
    if (!kernel) return scalar_kernels()->reduce(a);
    if (a.copies()) {
      copy_arguments k = copy_launch(src_at[0], dst_at, c.n_dst, a.bytes());
      void* parameters[] = {&k};
      return run_on_host(*find_host_kernel("penstock_copy"), parameters, 2, 3);
    }
    const std::string name = reduce_kernel(a);
    reduce_weights weights{};
    reduce_arguments k = reduce_launch(a, src_at, dst_at, &weights);
    void* parameters[] = {&k, &weights};
    const HostKernel* found = find_host_kernel(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_GE(work_items(k, name), c.count == 0 ? 0u : 1u);
    run_on_host(*found, parameters, 1 + static_cast<u32>(seed % 3), 4);
  };
  run(&kernel_side, true);
  run(&scalar_side, false);
  // Whole memories: results, guards, and sources that nobody may have touched.
  for (u32 slot = 0; slot < c.n_src + c.n_dst; ++slot)
    ASSERT_EQ(std::memcmp(kernel_side.at(slot, 0) - kGuard, scalar_side.at(slot, 0) - kGuard,
                          kMostBytes + 3 * kGuard),
              0)
        << penstock_type_name(c.type) << " to " << penstock_type_name(c.out_type) << " "
        << penstock_redop_name(c.redop) << " block " << c.block << " n " << c.n_src << " count "
        << c.count << " weighted " << c.weighted << " in place " << c.in_place << " operand "
        << slot;
}

bool is_float(u32 type) {
  return type == PENSTOCK_F64 || penstock_fold_type(type, 1) == PENSTOCK_F32;
}

// Counts and distances that make heads, packs and tails of every size.
void try_all(Case c, std::mt19937_64* random) {
  for (const u32 n_src : {1u, 2u, 5u, 8u, 17u}) {
    for (int kind = 0; kind < 4; ++kind) {
      c.n_src = n_src;
      c.n_dst = 1 + static_cast<u32>((*random)() % 3);
      c.count = kind == 0 ? (*random)() % 70 : (*random)() % 400;
      const u64 size = penstock_type_size(c.type), common = (*random)() % 16;
      for (u64& skew : c.skew)
        skew = kind < 2 ? common / size * size : kind == 2 ? (*random)() % 8 * 8 : (*random)() % 64;
      const bool one_size = penstock_type_size(c.type) == penstock_type_size(c.out_type) &&
                            (c.block == 0 || c.type == c.out_type);
      c.in_place = one_size && kind % 2 == 1;
      expect_equal(c, (*random)());
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(KernelsTest, ReduceOfEveryTypeAndOperation) {
  std::mt19937_64 random(5);
  for (u32 type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
    for (u32 redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop)
      for (const bool weighted : {false, true}) {
        if (weighted && (!is_float(type) || type == PENSTOCK_INT8 || redop < PENSTOCK_AVG))
          continue;
        for (int i = 0; i < 4; ++i)
          try_all({type, type, redop, 0, 0, 0, 0, weighted, {}, false}, &random);
        if (HasFatalFailure()) return;
      }
}

TEST(KernelsTest, ConversionsAndBlocks) {
  std::mt19937_64 random(6);
  const u32 types[] = {PENSTOCK_F32,    PENSTOCK_F16,    PENSTOCK_BF16,
                       PENSTOCK_F8E4M3, PENSTOCK_F8E5M2, PENSTOCK_INT8};
  for (const u32 type : types)
    for (const u32 out_type : types)
      for (u32 redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop) {
        const bool block = type == PENSTOCK_INT8 || out_type == PENSTOCK_INT8;
        if (type == out_type && !block) continue;
        for (const u32 size : {32u, 64u}) {
          if (!block && size == 64) continue;
          for (const bool weighted : {false, true}) {
            if (weighted && redop < PENSTOCK_AVG) continue;
            try_all({type, out_type, redop, block ? size : 0, 0, 0, 0, weighted, {}, false},
                    &random);
            if (HasFatalFailure()) return;
          }
        }
      }
}

TEST(KernelsTest, CopyAtEveryAlignment) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const u32 n_dst = 1 + static_cast<u32>(random() % 3);
    const u64 bytes = random() % kMostBytes, common = random() % 64;
    Operands operands(4);
    std::byte* src = operands.at(0, common);
    for (u64 k = 0; k < bytes; ++k) src[k] = static_cast<std::byte>(random());
    u64 dst[3];
    for (u32 d = 0; d < n_dst; ++d)
      dst[d] = address_of(operands.at(1 + d, i % 2 == 0 ? common : random() % 64));
    std::vector<std::byte> expected = operands.memory();
    for (u32 d = 0; d < n_dst; ++d)
      std::memcpy(
          expected.data() + (reinterpret_cast<std::byte*>(dst[d]) - operands.memory().data()), src,
          bytes);
    copy_arguments k = copy_launch(address_of(src), dst, n_dst, bytes);
    if (i % 2 == 0 && bytes > 64) {
      EXPECT_GE(k.packs, bytes / 16 - 1);
    }
    void* parameters[] = {&k};
    run_on_host(*find_host_kernel("penstock_copy"), parameters, 1 + static_cast<u32>(i % 3), 5);
    ASSERT_EQ(operands.memory(), expected) << i;
  }
}

TEST(KernelsTest, OuterSteps) {
  std::mt19937_64 random(8);
  for (const u32 type : {PENSTOCK_F32, PENSTOCK_F16, PENSTOCK_BF16, PENSTOCK_F8E4M3,
                         PENSTOCK_F8E5M2, PENSTOCK_INT8}) {
    for (int i = 0; i < 60; ++i) {
      Case c{type,
             type,
             0,
             type == PENSTOCK_INT8 ? 32 + 32 * (i % 2u) : 0,
             1 + i % 9u,
             2,
             random() % 300,
             false,
             {},
             false};
      for (u64& skew : c.skew)
        skew = i % 3 == 0 ? random() % 64 : i % 3 == 1 ? 16 : random() % 16 * 4;
      const u64 seed = random();
      Operands sides[2] = {Operands(c.n_src + 2), Operands(c.n_src + 2)};
      for (Operands& side : sides) {
        fill(c, seed, &side);
        const void* src[PENSTOCK_MAX_SOURCES];
        u64 src_at[PENSTOCK_MAX_SOURCES];
        for (u32 s = 0; s < c.n_src; ++s) src_at[s] = address_of(src[s] = side.at(s, c.skew[s]));
        std::byte* state[2];
        for (u32 k = 0; k < 2; ++k) {
          state[k] = side.at(c.n_src + k, c.skew[c.n_src + k]);
          for (u64 e = 0; e < c.count; ++e) {
            const u64 value =
                conformance::element(conformance::bits_of(PENSTOCK_F32), seed, 50 + k, e);
            std::memcpy(state[k] + 4 * e, &value, 4);
          }
        }
        const OuterStepArguments a{c.type,   c.block, c.n_src, src, state[0],
                                   state[1], c.count, 0.7f,    0.9f};
        if (&side == &sides[0]) {
          scalar_kernels()->outer_step(a);
          continue;
        }
        outer_step_arguments k =
            outer_step_launch(a, src_at, address_of(state[0]), address_of(state[1]));
        void* parameters[] = {&k};
        run_on_host(*find_host_kernel(outer_step_kernel(a)), parameters, 2, 3);
      }
      for (u32 slot = 0; slot < c.n_src + 2; ++slot)
        ASSERT_EQ(std::memcmp(sides[0].at(slot, 0) - kGuard, sides[1].at(slot, 0) - kGuard,
                              kMostBytes + 3 * kGuard),
                  0)
            << penstock_type_name(type) << " case " << i << " operand " << slot;
    }
  }
}

}  // namespace
}  // namespace penstock::kernels
