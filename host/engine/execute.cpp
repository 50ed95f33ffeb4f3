#include "penstock/engine/execute.h"

#include <bit>
#include <cstring>

#include "penstock/engine/device_engine.h"

namespace penstock {

Access::Access(const Queue& queue, const Unfinished* unfinished, const Device* device)
    : queue_(queue),
      software_pool_(queue.pool() != nullptr && queue.pool()->coherence() == Coherence::software
                         ? queue.pool()
                         : nullptr),
      unfinished_(unfinished),
      device_(device) {}

// A host address may point into a mapping of the pool.
bool Access::needs_care(const void* data, std::uint64_t bytes) const {
  penstock_address ignored = 0;
  return software_pool_ != nullptr && software_pool_->address_of(data, bytes, &ignored);
}

bool Access::hold(const void* data, std::uint64_t bytes) const {
  if (unfinished_ == nullptr || !unfinished_->writes(data, bytes)) return false;
  held_ = true;
  return true;
}

void Access::observe(const void* data, std::uint64_t bytes) const {
  if (needs_care(data, bytes) && !hold(data, bytes)) software_pool_->observe(data, bytes);
}
void Access::publish(const void* data, std::uint64_t bytes) const {
  if (needs_care(data, bytes)) software_pool_->publish(data, bytes);
}

const std::byte* Access::source(penstock_address address, std::uint64_t bytes) const {
  const std::byte* data = queue_.resolve(address, bytes, false);
  if (data == nullptr || hold(data, bytes)) return nullptr;
  if (device_ != nullptr && !device_->host_reads(data, bytes)) return nullptr;
  observe(data, bytes);
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

struct OperandBytes {
  std::uint64_t src, dst;
  bool in_place;  // a destination may be a source exactly
};

// Destinations are resolved and compared before any source is observed, so that a refused
// descriptor leaves even the caches alone.
Outcome resolve_operands(const Access& access, const penstock_descriptor& d,
                         const penstock_address* src, const OperandBytes& bytes, Operands* out) {
  for (std::uint32_t i = 0; i < d.n_dst; ++i) {
    out->dst[i] = access.resolve(d.dst[i], bytes.dst, true);
    if (out->dst[i] == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, d.dst[i]};
  }
  for (std::uint32_t i = 0; i < d.n_src; ++i) {
    out->src[i] = access.resolve(src[i], bytes.src, false);
    if (out->src[i] == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, src[i]};
  }
  for (std::uint32_t i = 0; i < d.n_dst; ++i) {
    for (std::uint32_t s = 0; s < d.n_src; ++s)
      if (!(bytes.in_place && out->dst[i] == out->src[s]) &&
          overlaps(out->dst[i], bytes.dst, out->src[s], bytes.src))
        return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[i]};
    for (std::uint32_t j = 0; j < i; ++j)
      if (overlaps(out->dst[i], bytes.dst, out->dst[j], bytes.dst))
        return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.dst[i]};
  }
  for (std::uint32_t i = 0; i < d.n_src; ++i) access.observe(out->src[i], bytes.src);
  return {};
}

// The sources' addresses. A list is copied before it is looked at: its memory may belong to another
// process.
Outcome read_sources(const Access& access, const penstock_descriptor& d,
                     penstock_address (&copy)[PENSTOCK_MAX_SOURCES],
                     const penstock_address** sources) {
  *sources = d.src;
  if ((d.flags & PENSTOCK_FLAG_SRC_LIST) == 0) return {};
  const std::uint64_t bytes = d.n_src * sizeof(penstock_address);
  const std::byte* data = access.source(d.src[0], bytes);
  if (data == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, d.src[0]};
  std::memcpy(copy, data, bytes);
  *sources = copy;
  return {};
}

// Copied like a list. Sources of weight zero leave, so that kernels never see them.
template <typename T>
Outcome read_weights(const Access& access, const penstock_descriptor& d, Operands* operands,
                     T (&weights)[PENSTOCK_MAX_SOURCES], std::uint32_t* n_src) {
  const std::byte* data = access.source(d.scale, d.n_src * sizeof(T));
  if (data == nullptr) return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_WEIGHTS, d.scale};
  std::memcpy(weights, data, d.n_src * sizeof(T));
  *n_src = 0;
  for (std::uint32_t s = 0; s < d.n_src; ++s) {
    if (weights[s] == T{0}) continue;
    weights[*n_src] = weights[s];
    operands->src[*n_src] = operands->src[s];
    ++*n_src;
  }
  if (*n_src == 0) return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_WEIGHTS, d.scale};
  return {};
}

}  // namespace

Outcome prepare_copy(const Access& access, const penstock_descriptor& d, Operands* operands) {
  return resolve_operands(access, d, d.src, OperandBytes{d.count, d.count, true}, operands);
}

Outcome prepare_reduce(const Access& access, const penstock_descriptor& d,
                       PreparedReduce* prepared) {
  penstock_address list[PENSTOCK_MAX_SOURCES];
  const penstock_address* sources = nullptr;
  Outcome outcome = read_sources(access, d, list, &sources);
  if (!outcome.ok()) return outcome;
  ReduceArguments& a = prepared->arguments;
  a = {d.type, d.redop, d.n_src, d.n_dst, nullptr, nullptr, d.count, d.scale};
  a.stream = (d.flags & PENSTOCK_FLAG_STREAM) != 0;
  a.out_type = d.out_type;
  a.block = d.block;
  const bool one_size = !a.converts() || (d.block == 0 && penstock_type_size(d.type) ==
                                                              penstock_type_size(d.out_type));
  const OperandBytes bytes{a.bytes(), penstock_operand_bytes(d.out_type, d.block, d.count),
                           one_size};
  Operands& operands = prepared->operands;
  outcome = resolve_operands(access, d, sources, bytes, &operands);
  if (!outcome.ok()) return outcome;
  a.src = operands.src;
  a.dst = operands.dst;
  prepared->dst_bytes = bytes.dst;
  if ((d.flags & PENSTOCK_FLAG_WEIGHTS) == 0) return {};
  a.weights = &prepared->weights;
  return d.type == PENSTOCK_F64
             ? read_weights(access, d, &operands, prepared->weights.f64, &a.n_src)
             : read_weights(access, d, &operands, prepared->weights.f32, &a.n_src);
}

Outcome prepare_outer_step(const Access& access, const penstock_descriptor& d,
                           PreparedOuterStep* prepared) {
  penstock_address list[PENSTOCK_MAX_SOURCES];
  const penstock_address* sources = nullptr;
  Outcome outcome = read_sources(access, d, list, &sources);
  if (!outcome.ok()) return outcome;
  const std::uint64_t state_bytes = d.count * sizeof(float);
  const OperandBytes bytes{penstock_operand_bytes(d.type, d.block, d.count), state_bytes, false};
  Operands& operands = prepared->operands;
  outcome = resolve_operands(access, d, sources, bytes, &operands);
  if (!outcome.ok()) return outcome;
  // Destinations are read, too.
  for (std::uint32_t i = 0; i < d.n_dst; ++i) {
    if (access.shared(d.dst[i], state_bytes) == nullptr)
      return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, d.dst[i]};
  }
  prepared->dst_bytes = state_bytes;
  OuterStepArguments& a = prepared->arguments;
  a.type = d.type;
  a.block = d.block;
  a.n_src = d.n_src;
  a.src = operands.src;
  a.momentum = operands.dst[0];
  a.parameters = operands.dst[1];
  a.count = d.count;
  a.learning_rate = std::bit_cast<float>(static_cast<std::uint32_t>(d.scale));
  a.momentum_factor = std::bit_cast<float>(static_cast<std::uint32_t>(d.scale >> 32));
  return {};
}

Outcome execute_copy(const Access& access, const Kernels& kernels, const penstock_descriptor& d) {
  if (d.count == 0) return {};
  Operands operands;
  const Outcome outcome = prepare_copy(access, d, &operands);
  if (!outcome.ok()) return outcome;
  const bool stream = (d.flags & PENSTOCK_FLAG_STREAM) != 0;
  kernels.copy(operands.dst, d.n_dst, operands.src[0], d.count, stream);
  for (std::uint32_t i = 0; i < d.n_dst; ++i) access.publish(operands.dst[i], d.count);
  return {};
}

Outcome execute_reduce(const Access& access, const Kernels& kernels, const penstock_descriptor& d) {
  if (d.count == 0) return {};
  PreparedReduce prepared;
  const Outcome outcome = prepare_reduce(access, d, &prepared);
  if (!outcome.ok()) return outcome;
  kernels.reduce(prepared.arguments);
  for (std::uint32_t i = 0; i < d.n_dst; ++i)
    access.publish(prepared.operands.dst[i], prepared.dst_bytes);
  return {};
}

Outcome execute_outer_step(const Access& access, const Kernels& kernels,
                           const penstock_descriptor& d) {
  if (d.count == 0) return {};
  PreparedOuterStep prepared;
  const Outcome outcome = prepare_outer_step(access, d, &prepared);
  if (!outcome.ok()) return outcome;
  kernels.outer_step(prepared.arguments);
  for (std::uint32_t i = 0; i < d.n_dst; ++i)
    access.publish(prepared.operands.dst[i], prepared.dst_bytes);
  return {};
}

}  // namespace penstock
