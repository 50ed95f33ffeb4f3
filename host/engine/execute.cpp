#include "penstock/engine/execute.h"

#include <cstring>

namespace penstock {

Access::Access(const Queue& queue)
    : queue_(queue),
      software_pool_(queue.pool() != nullptr && queue.pool()->coherence() == Coherence::software
                         ? queue.pool()
                         : nullptr) {}

// A host address may point into a mapping of the pool.
bool Access::needs_care(const void* data, std::uint64_t bytes) const {
  penstock_address ignored = 0;
  return software_pool_ != nullptr && software_pool_->address_of(data, bytes, &ignored);
}

void Access::observe(const void* data, std::uint64_t bytes) const {
  if (needs_care(data, bytes)) software_pool_->observe(data, bytes);
}
void Access::publish(const void* data, std::uint64_t bytes) const {
  if (needs_care(data, bytes)) software_pool_->publish(data, bytes);
}

const std::byte* Access::source(penstock_address address, std::uint64_t bytes) const {
  const std::byte* data = queue_.resolve(address, bytes, false);
  if (data != nullptr) observe(data, bytes);
  return data;
}
std::byte* Access::shared(penstock_address address, std::uint64_t bytes) const {
  if (queue_.resolve(address, bytes, false) == nullptr) return nullptr;
  std::byte* data = queue_.resolve(address, bytes, true);
  if (data != nullptr) observe(data, bytes);
  return data;
}

bool overlaps(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) {
  const auto a_start = reinterpret_cast<std::uintptr_t>(a);
  const auto b_start = reinterpret_cast<std::uintptr_t>(b);
  return a_start < b_start ? b_start - a_start < a_bytes : a_start - b_start < b_bytes;
}

namespace {

// Pointers of one COPY or REDUCE. Destinations are resolved and compared before any source is
// observed, so that a refused descriptor leaves even the caches alone.
struct Operands {
  const void* src[PENSTOCK_MAX_SOURCES];
  void* dst[PENSTOCK_MAX_DESTINATIONS];
};

Outcome resolve_operands(const Access& access, const penstock_descriptor& d,
                         const penstock_address* src, std::uint64_t bytes, Operands* out) {
  for (std::uint32_t i = 0; i < d.n_dst; ++i) {
    out->dst[i] = access.resolve(d.dst[i], bytes, true);
    if (out->dst[i] == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, d.dst[i]};
  }
  for (std::uint32_t i = 0; i < d.n_src; ++i) {
    out->src[i] = access.resolve(src[i], bytes, false);
    if (out->src[i] == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, src[i]};
  }
  for (std::uint32_t i = 0; i < d.n_dst; ++i) {
    for (std::uint32_t s = 0; s < d.n_src; ++s)
      if (out->dst[i] != out->src[s] && overlaps(out->dst[i], bytes, out->src[s], bytes))
        return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[i]};
    for (std::uint32_t j = 0; j < i; ++j)
      if (overlaps(out->dst[i], bytes, out->dst[j], bytes))
        return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[i]};
  }
  for (std::uint32_t i = 0; i < d.n_src; ++i) access.observe(out->src[i], bytes);
  return {};
}

}  // namespace

Outcome execute_copy(const Access& access, const Kernels& kernels, const penstock_descriptor& d) {
  if (d.count == 0) return {};
  Operands operands;
  const Outcome outcome = resolve_operands(access, d, d.src, d.count, &operands);
  if (!outcome.ok()) return outcome;
  const bool stream = (d.flags & PENSTOCK_FLAG_STREAM) != 0;
  kernels.copy(operands.dst, d.n_dst, operands.src[0], d.count, stream);
  for (std::uint32_t i = 0; i < d.n_dst; ++i) access.publish(operands.dst[i], d.count);
  return {};
}

Outcome execute_reduce(const Access& access, const Kernels& kernels, const penstock_descriptor& d) {
  if (d.count == 0) return {};
  // A list is copied before it is looked at: its memory may belong to another process.
  penstock_address list[PENSTOCK_MAX_SOURCES];
  const bool listed = (d.flags & PENSTOCK_FLAG_SRC_LIST) != 0;
  if (listed) {
    const std::uint64_t list_bytes = d.n_src * sizeof(penstock_address);
    const std::byte* data = access.source(d.src[0], list_bytes);
    if (data == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, d.src[0]};
    std::memcpy(list, data, list_bytes);
  }
  const std::uint64_t bytes = d.count * penstock_type_size(d.type);
  Operands operands;
  const Outcome outcome = resolve_operands(access, d, listed ? list : d.src, bytes, &operands);
  if (!outcome.ok()) return outcome;
  kernels.reduce(ReduceArguments{d.type, d.redop, d.n_src, d.n_dst, operands.src, operands.dst,
                                 d.count, d.scale, (d.flags & PENSTOCK_FLAG_STREAM) != 0});
  for (std::uint32_t i = 0; i < d.n_dst; ++i) access.publish(operands.dst[i], bytes);
  return {};
}

}  // namespace penstock
