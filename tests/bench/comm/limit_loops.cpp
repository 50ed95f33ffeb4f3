// Compiled twice, with BENCH_LOOPS and BENCH_LOOPS_NAME naming what comes out of it.
#include "limit_loops.h"

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace penstock::bench {
namespace {

using F32 = float __attribute__((vector_size(64)));
using U32 = std::uint32_t __attribute__((vector_size(64)));
using U16 = std::uint16_t __attribute__((vector_size(32)));
using U8 = std::uint8_t __attribute__((vector_size(64)));

template <typename Vector>
inline void load(Vector* to, const void* from) {
  std::memcpy(to, from, sizeof(Vector));
}

template <bool kStream, typename Vector>
inline void store(std::byte* to, const Vector& value) {
  if constexpr (kStream && sizeof(Vector) == 64) {
#ifdef __AVX512F__
    __m512i whole;
    std::memcpy(&whole, &value, 64);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), whole);
#else
    __m256i half[2];
    std::memcpy(half, &value, 64);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), half[0]);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 32), half[1]);
#endif
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}

template <bool kStream>
void copy_loop(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t at = 0;
  for (; at + 256 <= bytes; at += 256) {
    U8 a, b, c, d;
    load(&a, from + at);
    load(&b, from + at + 64);
    load(&c, from + at + 128);
    load(&d, from + at + 192);
    store<kStream>(to + at, a);
    store<kStream>(to + at + 64, b);
    store<kStream>(to + at + 128, c);
    store<kStream>(to + at + 192, d);
  }
  for (; at + 64 <= bytes; at += 64) {
    U8 a;
    load(&a, from + at);
    store<kStream>(to + at, a);
  }
  if (at < bytes) std::memcpy(to + at, from + at, bytes - at);
  if (kStream) _mm_sfence();
}

void copy(void* to, const void* from, std::size_t bytes, bool stream) {
  auto* const out = static_cast<std::byte*>(to);
  const auto* const in = static_cast<const std::byte*>(from);
  stream ? copy_loop<true>(out, in, bytes) : copy_loop<false>(out, in, bytes);
}

// One step of a fold: 64 bytes of f32 and int8, 32 bytes of bf16.
struct StepF32 {
  using Sum = F32;
  static constexpr std::size_t kBytes = 64;
  static void first(Sum* sum, const std::byte* from) { load(sum, from); }
  static void add(Sum* sum, const std::byte* from) {
    F32 next;
    load(&next, from);
    *sum += next;
  }
  template <bool kStream>
  static void put(std::byte* to, const Sum& sum) {
    store<kStream>(to, sum);
  }
};

struct StepInt8 {
  using Sum = U8;
  static constexpr std::size_t kBytes = 64;
  static void first(Sum* sum, const std::byte* from) { load(sum, from); }
  static void add(Sum* sum, const std::byte* from) {
    U8 next;
    load(&next, from);
    *sum += next;
  }
  template <bool kStream>
  static void put(std::byte* to, const Sum& sum) {
    store<kStream>(to, sum);
  }
};

struct StepBf16 {
  using Sum = F32;
  static constexpr std::size_t kBytes = 32;
  static void first(Sum* sum, const std::byte* from) {
    U16 half;
    load(&half, from);
    const U32 bits = __builtin_convertvector(half, U32) << 16;
    std::memcpy(sum, &bits, sizeof bits);
  }
  static void add(Sum* sum, const std::byte* from) {
    F32 next;
    first(&next, from);
    *sum += next;
  }
  template <bool kStream>
  static void put(std::byte* to, const Sum& sum) {
    U32 bits;
    std::memcpy(&bits, &sum, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    const U16 half = __builtin_convertvector(bits >> 16, U16);
    store<kStream>(to, half);
  }
};

// kSources 0: `sources` of them.
template <typename Step, bool kStream, std::size_t kSources>
void fold_loop(void* const* to, std::size_t destinations, const void* const* from,
               std::size_t sources, std::size_t bytes) {
  const std::size_t n = kSources == 0 ? sources : kSources;
  const auto* const* in = reinterpret_cast<const std::byte* const*>(from);
  auto* const* out = reinterpret_cast<std::byte* const*>(to);
  typename Step::Sum sum;
  std::size_t at = 0;
  for (; at + Step::kBytes <= bytes; at += Step::kBytes) {
    Step::first(&sum, in[0] + at);
    for (std::size_t i = 1; i < n; ++i) Step::add(&sum, in[i] + at);
    for (std::size_t i = 0; i < destinations; ++i) {
      Step::template put<kStream>(out[i] + at, sum);
    }
  }
  if (at < bytes) {
    std::byte source[Step::kBytes] = {};
    std::byte result[Step::kBytes];
    std::memcpy(source, in[0] + at, bytes - at);
    Step::first(&sum, source);
    for (std::size_t i = 1; i < n; ++i) {
      std::memcpy(source, in[i] + at, bytes - at);
      Step::add(&sum, source);
    }
    Step::template put<false>(result, sum);
    for (std::size_t i = 0; i < destinations; ++i) std::memcpy(out[i] + at, result, bytes - at);
  }
  if (kStream) _mm_sfence();
}

template <typename Step, bool kStream>
void fold_sources(void* const* to, std::size_t destinations, const void* const* from,
                  std::size_t sources, std::size_t bytes) {
  switch (sources) {
    case 2:
      return fold_loop<Step, kStream, 2>(to, destinations, from, sources, bytes);
    case 4:
      return fold_loop<Step, kStream, 4>(to, destinations, from, sources, bytes);
    default:
      return fold_loop<Step, kStream, 0>(to, destinations, from, sources, bytes);
  }
}

template <typename Step>
void fold_step(void* const* to, std::size_t destinations, const void* const* from,
               std::size_t sources, std::size_t bytes, bool stream) {
  stream ? fold_sources<Step, true>(to, destinations, from, sources, bytes)
         : fold_sources<Step, false>(to, destinations, from, sources, bytes);
}

void fold(Type type, void* const* to, std::size_t destinations, const void* const* from,
          std::size_t sources, std::size_t bytes, bool stream) {
  switch (type) {
    case Type::f32:
      return fold_step<StepF32>(to, destinations, from, sources, bytes, stream);
    case Type::bf16:
      return fold_step<StepBf16>(to, destinations, from, sources, bytes, stream);
    default:
      return fold_step<StepInt8>(to, destinations, from, sources, bytes, stream);
  }
}

}  // namespace

const LimitLoops BENCH_LOOPS = {BENCH_LOOPS_NAME, copy, fold};

}  // namespace penstock::bench
