#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/engine/simd.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "penstock/engine/simd_reduce.h"
#include "penstock/engine/simd_select.h"

#ifndef PENSTOCK_ENGINE_SIMD_LINE_
#define PENSTOCK_ENGINE_SIMD_LINE_
namespace penstock {
constexpr std::uint64_t kLine = PENSTOCK_CACHE_LINE;
}
#endif

HWY_BEFORE_NAMESPACE();
namespace penstock {
namespace HWY_NAMESPACE {
std::int64_t TargetBit() { return HWY_TARGET; }

// Lines of the destination that are written whole go past the caches, its edges through them.
void StreamBytes(void* to, const void* from, std::uint64_t bytes) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  auto* dst = static_cast<std::uint8_t*>(to);
  const auto* src = static_cast<const std::uint8_t*>(from);
  const std::uint64_t before = -reinterpret_cast<std::uintptr_t>(dst) % kLine;
  const std::uint64_t head = before < bytes ? before : bytes;
  std::memcpy(dst, src, head);
  std::uint64_t at = head;
  for (; at + kLine <= bytes; at += kLine)
    for (std::size_t i = 0; i < kLine; i += lanes)
      hn::Stream(hn::LoadU(d, src + at + i), d, dst + at + i);
  std::memcpy(dst + at, src + at, bytes - at);
}
}  // namespace HWY_NAMESPACE
}  // namespace penstock
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {
HWY_EXPORT(TargetBit);
HWY_EXPORT(StreamBytes);
namespace {

// Of a source that goes to several destinations: read once from memory, then from the cache.
constexpr std::uint64_t kCopyBlock = std::uint64_t{64} << 10;
// Of a result that is to be streamed: it is folded into a buffer that stays in the first cache, so
// that whole lines leave it whatever the element's size. A multiple of the line.
constexpr std::uint64_t kStreamBlock = std::uint64_t{8} << 10;

void plain_copy(void* to, const void* from, std::uint64_t bytes) { std::memcpy(to, from, bytes); }

class SimdKernels final : public Kernels {
 public:
  // The C library's memcpy is as wide as the processor, and goes over to streaming stores (with the
  // store fence they need) where a copy is larger than this thread's share of the last cache.
  void copy(void* const* dst, std::uint32_t n_dst, const void* src, std::uint64_t bytes,
            bool stream) const override {
    const auto move = stream ? simd_stream : plain_copy;
    const std::uint64_t block = n_dst == 1 ? bytes : kCopyBlock;
    for (std::uint64_t at = 0; at < bytes; at += block) {
      const std::uint64_t now = bytes - at < block ? bytes - at : block;
      for (std::uint32_t d = 0; d < n_dst; ++d)
        if (dst[d] != src)
          move(static_cast<char*>(dst[d]) + at, static_cast<const char*>(src) + at, now);
    }
    if (stream) hwy::FlushStream();
  }
  void reduce(const ReduceArguments& arguments) const override { simd_reduce(arguments); }
  void outer_step(const OuterStepArguments& arguments) const override {
    simd_outer_step(arguments);
  }
  void select(const TableView& table, const penstock_program& program, const penstock_task& task,
              bool commit, penstock_result* result) const override {
    simd_select(table, program, task, commit, result);
  }
};

}  // namespace

std::unique_ptr<const Kernels> simd_kernels() { return std::make_unique<SimdKernels>(); }

void simd_stream(void* to, const void* from, std::uint64_t bytes) {
  HWY_DYNAMIC_DISPATCH(StreamBytes)(to, from, bytes);
}

const char* simd_target() { return hwy::TargetName(HWY_DYNAMIC_DISPATCH(TargetBit)()); }

namespace {

void reduce_streamed(const ReduceArguments& a) {
  alignas(kLine) std::byte buffer[kStreamBlock];
  const std::uint32_t size = penstock_type_size(a.type);
  const void* src[PENSTOCK_MAX_SOURCES];
  void* into[] = {buffer};
  ReduceArguments part = a;
  part.stream = false;
  part.src = src;
  part.dst = into;
  part.n_dst = 1;
  // The first block ends at the end of a line of the first destination.
  const std::uint64_t skew = reinterpret_cast<std::uintptr_t>(a.dst[0]) % kLine / size;
  std::uint64_t room = kStreamBlock / size - skew;
  for (std::uint64_t at = 0; at < a.count; at += part.count) {
    part.count = std::min(room, a.count - at);
    room = kStreamBlock / size;
    for (std::uint32_t s = 0; s < a.n_src; ++s)
      src[s] = static_cast<const char*>(a.src[s]) + at * size;
    simd_reduce(part);
    for (std::uint32_t d = 0; d < a.n_dst; ++d)
      simd_stream(static_cast<char*>(a.dst[d]) + at * size, buffer, part.count * size);
  }
  hwy::FlushStream();
}

}  // namespace

void simd_reduce(const ReduceArguments& a) {
  if (a.copies()) {
    SimdKernels().copy(a.dst, a.n_dst, a.src[0], a.bytes(), a.stream);
  } else if (a.fused()) {
    simd_reduce_fused(a);
    if (a.stream) hwy::FlushStream();
  } else if (a.stream) {
    reduce_streamed(a);
  } else if (a.type <= PENSTOCK_UINT64) {
    simd_reduce_integer(a);
  } else if (a.type == PENSTOCK_F32 || a.type == PENSTOCK_F64) {
    simd_reduce_float(a);
  } else {
    simd_reduce_narrow(a);
  }
}

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  hwy::SetSupportedTargetsForTest(0);
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  // A better target has a lower bit.
  for (std::int64_t bit = 1; bit > 0 && bit <= targets; bit <<= 1)
    if ((targets & bit) != 0) names.emplace_back(hwy::TargetName(bit));
  return names;
}

bool use_simd_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  std::int64_t chosen = name.empty() ? targets : 0;
  for (std::int64_t bit = 1; bit > 0 && bit <= targets; bit <<= 1)
    if ((targets & bit) != 0 && name == hwy::TargetName(bit)) chosen = bit;
  if (chosen == 0) return false;
  if (!name.empty()) hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return true;
}

}  // namespace penstock
#endif
