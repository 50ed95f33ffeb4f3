#include "penstock/drivers/kernels/launch.h"

#include <algorithm>
#include <cstring>

namespace penstock::kernels {

static_assert(FOLD_SUM == PENSTOCK_SUM && FOLD_PROD == PENSTOCK_PROD && FOLD_MIN == PENSTOCK_MIN &&
              FOLD_MAX == PENSTOCK_MAX && FOLD_AVG == PENSTOCK_AVG &&
              FOLD_PREMUL_SUM == PENSTOCK_PREMUL_SUM);
static_assert(TYPE_INT8 == PENSTOCK_INT8 && TYPE_F16 == PENSTOCK_F16 && TYPE_F32 == PENSTOCK_F32 &&
              TYPE_BF16 == PENSTOCK_BF16 && TYPE_F8E4M3 == PENSTOCK_F8E4M3 &&
              TYPE_F8E5M2 == PENSTOCK_F8E5M2);
static_assert(KERNEL_SOURCES == PENSTOCK_MAX_SOURCES &&
              KERNEL_DESTINATIONS == PENSTOCK_MAX_DESTINATIONS &&
              BLOCK_SCALE_BYTES == PENSTOCK_BLOCK_SCALE_BYTES);

namespace {

constexpr u64 kPack = 16;

// What the addresses have in common: `all` of them are multiples of its powers of two, and their
// distances to one another are multiples of those of `apart`.
struct Alignment {
  u64 first = 0, all = 0, apart = 0;
  bool empty = true;
  void add(u64 address) {
    if (empty) first = address;
    empty = false;
    all |= address;
    apart |= address ^ first;
  }
  bool multiples_of(u64 bytes) const { return all % bytes == 0; }
};

// Elements of `size` bytes before and in packs that all operands reach at once.
void split(const Alignment& alignment, u64 size, u64 count, u64* head, u64* packs) {
  *head = count;
  *packs = 0;
  const u64 to_pack = (kPack - alignment.first % kPack) % kPack;
  if (alignment.apart % kPack != 0 || to_pack % size != 0 || to_pack / size > count) return;
  *head = to_pack / size;
  *packs = (count - *head) * size / kPack;
}

const char* type_name(u32 type, u32 block) {
  return type == PENSTOCK_INT8 && block != 0 ? "block" : penstock_type_name(type);
}

// Bytes to which an address has to be aligned so that four elements are reached at once.
u64 wide_bytes(u32 type, u32 block) {
  return type == PENSTOCK_INT8 && block != 0 ? BLOCK_SCALE_BYTES : 4 * penstock_type_size(type);
}
u64 element_bytes(u32 type, u32 block) {
  return type == PENSTOCK_INT8 && block != 0 ? 1 : penstock_type_size(type);
}

template <typename T, typename Bits>
u64 average_factor(const ReduceArguments& a) {
  const auto* weights = static_cast<const T*>(a.weights);
  T sum = weights != nullptr ? weights[0] : static_cast<T>(a.n_src);
  if (weights != nullptr)
    for (u32 s = 1; s < a.n_src; ++s) sum = sum + weights[s];
  return std::bit_cast<Bits>(T{1} / sum);
}

}  // namespace

copy_arguments copy_launch(u64 src, const u64* dst, u32 n_dst, u64 bytes) {
  copy_arguments k{};
  Alignment alignment;
  alignment.add(k.src = src);
  for (u32 d = 0; d < n_dst; ++d) alignment.add(k.dst[d] = dst[d]);
  k.bytes = bytes;
  k.n_dst = n_dst;
  split(alignment, 1, bytes, &k.head, &k.packs);
  return k;
}

std::string reduce_kernel(const ReduceArguments& a) {
  const char* kind = a.converts() || a.block != 0 ? "penstock_convert_" : "penstock_reduce_";
  return std::string(kind) + type_name(a.type, a.block);
}

reduce_arguments reduce_launch(const ReduceArguments& a, const u64* src, const u64* dst,
                               reduce_weights* weights) {
  reduce_arguments k{};
  Alignment in, out;
  for (u32 s = 0; s < a.n_src; ++s) in.add(k.src[s] = src[s]);
  for (u32 d = 0; d < a.n_dst; ++d) out.add(k.dst[d] = dst[d]);
  k.count = a.count;
  k.scale = a.scale;
  k.redop = a.redop;
  k.n_src = a.n_src;
  k.n_dst = a.n_dst;
  k.out_type = a.result_type();
  k.block = a.block;
  k.weighted = a.weights != nullptr ? 1 : 0;
  k.aligned = in.multiples_of(element_bytes(a.type, a.block)) &&
              out.multiples_of(element_bytes(k.out_type, a.block));
  k.wide = in.multiples_of(wide_bytes(a.type, a.block)) &&
           out.multiples_of(wide_bytes(k.out_type, a.block));
  const u32 fold = penstock_fold_type(a.type, a.block);
  k.factor = fold == PENSTOCK_F64   ? average_factor<f64, u64>(a)
             : fold == PENSTOCK_F32 ? average_factor<f32, u32>(a)
                                    : a.n_src;
  if (!a.converts() && a.block == 0) {
    for (u32 d = 0; d < a.n_dst; ++d) in.add(dst[d]);
    split(in, penstock_type_size(a.type), a.count, &k.head, &k.packs);
  }
  if (a.weights == nullptr) return k;
  for (u32 s = 0; s < a.n_src; ++s)
    weights->bits[s] = fold == PENSTOCK_F64
                           ? std::bit_cast<u64>(static_cast<const f64*>(a.weights)[s])
                           : std::bit_cast<u32>(static_cast<const f32*>(a.weights)[s]);
  return k;
}

std::string outer_step_kernel(const OuterStepArguments& a) {
  return std::string("penstock_outer_step_") + type_name(a.type, a.block);
}

outer_step_arguments outer_step_launch(const OuterStepArguments& a, const u64* src, u64 momentum,
                                       u64 parameters) {
  outer_step_arguments k{};
  Alignment in, state;
  for (u32 s = 0; s < a.n_src; ++s) in.add(k.src[s] = src[s]);
  state.add(k.momentum = momentum);
  state.add(k.parameters = parameters);
  k.count = a.count;
  k.factor = std::bit_cast<u32>(1.0f / static_cast<f32>(a.n_src));
  k.learning_rate = std::bit_cast<u32>(a.learning_rate);
  k.momentum_factor = std::bit_cast<u32>(a.momentum_factor);
  k.n_src = a.n_src;
  k.block = a.block;
  k.aligned = in.multiples_of(element_bytes(a.type, a.block)) && state.multiples_of(sizeof(f32));
  k.wide = in.multiples_of(wide_bytes(a.type, a.block)) && state.multiples_of(4 * sizeof(f32));
  return k;
}

u64 work_items(const copy_arguments& k) { return std::max(k.packs, k.bytes - k.packs * kPack); }

u64 work_items(const reduce_arguments& k, const std::string& kernel) {
  if (kernel.starts_with("penstock_convert_"))
    return k.out_type == PENSTOCK_INT8 ? (k.count + k.block - 1) / k.block : (k.count + 3) / 4;
  const u64 per_pack = kPack / penstock_type_size(k.out_type);
  return std::max(k.packs, k.count - k.packs * per_pack);
}

u64 work_items(const outer_step_arguments& k) { return (k.count + 3) / 4; }

}  // namespace penstock::kernels
