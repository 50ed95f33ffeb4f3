// How fast the simd engine's kernels move bytes, next to the C library's memcpy on the same
// buffers.
//
//   kernels [SIZE]    operand size: 64K, 16M; 32M unless told (larger than a core's caches)
//
// GB/s count every byte that is read or written once: (n_src + n_dst) * bytes / time. The best of
// several passes, so that a busy machine disturbs less.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "penstock/base/platform.h"
#include "penstock/engine/host_engine.h"

namespace {

using penstock::Kernels;

constexpr int kPasses = 7;
constexpr std::uint32_t kMaxSources = 8;

struct Buffers {
  explicit Buffers(std::uint64_t bytes) : size(bytes), memory((kMaxSources + 1) * bytes) {}
  std::byte* at(std::uint32_t i) { return memory.data() + i * size; }
  std::uint64_t size;
  std::vector<std::byte> memory;
};

template <typename Work>
double best_seconds(Work work) {
  penstock::Platform& platform = penstock::Platform::host();
  double best = 1e9;
  work();
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::uint64_t began = platform.now_ns();
    work();
    best = std::min(best, static_cast<double>(platform.now_ns() - began) * 1e-9);
  }
  return best;
}

double gigabytes(std::uint64_t bytes, double seconds) {
  return static_cast<double>(bytes) * 1e-9 / seconds;
}

double reduce_rate(const Kernels& kernels, Buffers& buffers, std::uint32_t type,
                   std::uint32_t redop, std::uint32_t n_src, bool stream) {
  const void* src[kMaxSources];
  for (std::uint32_t s = 0; s < n_src; ++s) src[s] = buffers.at(s);
  void* dst = buffers.at(kMaxSources);
  penstock::ReduceArguments a{
      type, redop, n_src, 1, src, &dst, buffers.size / penstock_type_size(type), 0, stream};
  return gigabytes((n_src + 1) * buffers.size, best_seconds([&] { kernels.reduce(a); }));
}

void print_reduce(const Kernels& kernels, Buffers& buffers) {
  fmt::print("{:<8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "REDUCE", "sum 2", "sum 3",
             "sum 4", "sum 8", "stream2", "max 2", "prod 2", "avg 2");
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    fmt::print("{:<8}", penstock_type_name(type));
    for (const std::uint32_t n_src : {2u, 3u, 4u, 8u})
      fmt::print(" {:>7.2f}", reduce_rate(kernels, buffers, type, PENSTOCK_SUM, n_src, false));
    fmt::print(" {:>7.2f}", reduce_rate(kernels, buffers, type, PENSTOCK_SUM, 2, true));
    for (const std::uint32_t redop : {PENSTOCK_MAX, PENSTOCK_PROD, PENSTOCK_AVG})
      fmt::print(" {:>7.2f}", reduce_rate(kernels, buffers, type, redop, 2, false));
    fmt::print("\n");
  }
}

struct Fused {
  const char* name;
  std::uint32_t type, out_type, redop, block, n_src;
  bool weighted;
};

// Operands of as many elements as f32 has in a buffer.
void print_fused(const Kernels& kernels, Buffers& buffers) {
  const std::uint64_t count = buffers.size / sizeof(float);
  const std::vector<float> weights(kMaxSources, 0.75f);
  const void* src[kMaxSources];
  for (std::uint32_t s = 0; s < kMaxSources; ++s) src[s] = buffers.at(s);
  void* dst = buffers.at(kMaxSources);
  for (const Fused& f :
       {Fused{"bf16 x2 sum to f32", PENSTOCK_BF16, PENSTOCK_F32, PENSTOCK_SUM, 0, 2, false},
        Fused{"f32 x2 sum to bf16", PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_SUM, 0, 2, false},
        Fused{"f32 to f8e4m3", PENSTOCK_F32, PENSTOCK_F8E4M3, PENSTOCK_SUM, 0, 1, false},
        Fused{"f32 x4 weighted avg", PENSTOCK_F32, PENSTOCK_F32, PENSTOCK_AVG, 0, 4, true},
        Fused{"bf16 x4 weighted avg", PENSTOCK_BF16, PENSTOCK_BF16, PENSTOCK_AVG, 0, 4, true},
        Fused{"f32 to blocks of 64", PENSTOCK_F32, PENSTOCK_INT8, PENSTOCK_SUM, 64, 1, false},
        Fused{"blocks x4 sum to f32", PENSTOCK_INT8, PENSTOCK_F32, PENSTOCK_SUM, 64, 4, false},
        Fused{"blocks x4 sum", PENSTOCK_INT8, PENSTOCK_INT8, PENSTOCK_SUM, 64, 4, false}}) {
    penstock::ReduceArguments a{f.type, f.redop, f.n_src, 1, src, &dst, count, 0};
    a.out_type = f.out_type;
    a.block = f.block;
    if (f.weighted) a.weights = weights.data();
    const std::uint64_t bytes =
        f.n_src * a.bytes() + penstock_operand_bytes(f.out_type, f.block, count);
    fmt::print("{:<21} {:>7.2f}\n", f.name,
               gigabytes(bytes, best_seconds([&] { kernels.reduce(a); })));
  }
  for (const std::uint32_t type : {PENSTOCK_F32, PENSTOCK_BF16}) {
    penstock::OuterStepArguments a{};
    a.type = type;
    a.n_src = 4;
    a.src = src;
    a.momentum = buffers.at(kMaxSources - 1);
    a.parameters = dst;
    a.count = count;
    a.learning_rate = 0.7f;
    a.momentum_factor = 0.9f;
    const std::uint64_t bytes = count * (4 * penstock_type_size(type) + 4 * sizeof(float));
    fmt::print("{:<4} x4 OUTER_STEP    {:>7.2f}\n", penstock_type_name(type),
               gigabytes(bytes, best_seconds([&] { kernels.outer_step(a); })));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t kib = 32768;
  if (argc > 1) {
    const char* end = argv[1] + std::strlen(argv[1]);
    const auto [unit, code] = std::from_chars(argv[1], end, kib);
    const bool mebi = end - unit == 1 && *unit == 'M';
    if (code != std::errc() || kib == 0 || kib > 4194304 || end - unit != 1 ||
        (*unit != 'K' && !mebi)) {
      fmt::print(stderr, "kernels: \"{}\" is no operand size; give 1K to 4096M\n", argv[1]);
      return 2;
    }
    if (mebi) kib = std::min<std::uint64_t>(kib, 4096) << 10;
  }
  Buffers buffers(kib << 10);
  // Sixteen-bit words around 0x3c00: normal numbers below 1 in every float type, so that no sum or
  // product is subnormal, which processors take much longer for.
  for (std::size_t i = 0; i + 2 <= buffers.memory.size(); i += 2) {
    buffers.memory[i] = static_cast<std::byte>((i * 2654435761u >> 13) & 0x3f);
    buffers.memory[i + 1] = std::byte{0x3c};
  }
  const auto kernels = penstock::simd_kernels();
  fmt::print("simd {}, operands of {} KiB, GB/s over all bytes read and written\n",
             penstock::simd_target(), kib);
  const double plain =
      best_seconds([&] { std::memcpy(buffers.at(1), buffers.at(0), buffers.size); });
  fmt::print("memcpy   {:>7.2f}\n", gigabytes(2 * buffers.size, plain));
  for (const std::uint32_t n_dst : {1u, 3u}) {
    for (const bool stream : {false, true}) {
      void* dst[] = {buffers.at(1), buffers.at(2), buffers.at(3)};
      const double seconds =
          best_seconds([&] { kernels->copy(dst, n_dst, buffers.at(0), buffers.size, stream); });
      fmt::print("COPY {} {} {:>7.2f}\n", n_dst, stream ? "stream" : "      ",
                 gigabytes((1 + n_dst) * buffers.size, seconds));
    }
  }
  print_reduce(*kernels, buffers);
  print_fused(*kernels, buffers);
  return 0;
}
