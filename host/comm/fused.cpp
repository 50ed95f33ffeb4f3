#include "penstock/comm/fused.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "penstock/engine/accept.h"
#include "penstock/engine/choice.h"
#include "penstock/engine/device_memory.h"
#include "penstock/queue/queue.h"

namespace penstock {
namespace {

penstock_descriptor reduce_of(std::uint32_t type, std::uint32_t out_type, std::uint32_t redop,
                              std::uint32_t block, std::uint32_t n_src, std::uint64_t count) {
  penstock_descriptor d{};
  d.opcode = PENSTOCK_OP_REDUCE;
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.type = static_cast<std::uint8_t>(type);
  d.out_type = static_cast<std::uint8_t>(out_type);
  d.redop = static_cast<std::uint8_t>(redop);
  d.n_src = static_cast<std::uint8_t>(n_src);
  d.n_dst = 1;
  // A block stands where something is block-scaled, and nowhere else.
  if (type == PENSTOCK_INT8 || out_type == PENSTOCK_INT8)
    d.block = static_cast<std::uint8_t>(block);
  d.flags = n_src > PENSTOCK_INLINE_SOURCES ? PENSTOCK_FLAG_SRC_LIST : 0;
  d.count = count;
  return d;
}

// One element type becomes another, block-scaled or not.
penstock_descriptor conversion(std::uint32_t type, std::uint32_t out_type, std::uint32_t block,
                               std::uint64_t count, const void* from, void* to) {
  penstock_descriptor d = reduce_of(type, out_type, PENSTOCK_SUM, block, 1, count);
  d.src[0] = penstock_address_host(from);
  d.dst[0] = penstock_address_host(to);
  return d;
}

Call bytes_call(Collective collective, const void* send, void* recv, std::uint64_t bytes) {
  Call call;
  call.collective = collective;
  call.send = send;
  call.recv = recv;
  call.count = bytes;
  return call;
}

void grow(std::vector<std::byte>* buffer, std::uint64_t bytes) {
  if (buffer->size() < bytes) buffer->resize(bytes);
}

}  // namespace

Fused::Fused(Comm& comm, std::shared_ptr<Engine> engine, std::unique_ptr<Queue> queue)
    : comm_(comm), engine_(std::move(engine)), queue_(std::move(queue)) {}

Result<std::unique_ptr<Fused>> Fused::create(Comm& comm, const std::string& engine) {
  EngineNeeds needs = needs_of_collectives();
  needs.opcodes |= 1u << PENSTOCK_OP_OUTER_STEP;
  needs.host_memory = true;
  PENSTOCK_ASSIGN(std::shared_ptr<Engine> made, make_engine(engine, needs));
  if (!made->capabilities().host_memory)
    return error(Code::unsupported,
                 "fused collectives: engine {} does not reach host memory, where they fold",
                 made->capabilities().name);
  QueueConfig config;
  config.depth = 2;
  PENSTOCK_ASSIGN(std::unique_ptr<Queue> queue, Queue::create(nullptr, config));
  return std::unique_ptr<Fused>(new Fused(comm, std::move(made), std::move(queue)));
}

std::uint64_t Fused::shard(std::uint64_t count, std::uint32_t block) const {
  const std::uint64_t even = (count + comm_.size() - 1) / comm_.size();
  return block == 0 ? even : (even + block - 1) / block * block;
}

Fused::Layout Fused::layout(std::uint64_t count, std::uint32_t type, std::uint32_t out_type,
                            std::uint32_t block) const {
  Layout l{};
  l.shard = shard(count, block);
  const std::uint64_t before = std::min(count, l.shard * comm_.rank());
  l.here = std::min(l.shard, count - before);
  l.in = block != 0 ? std::uint32_t{PENSTOCK_INT8} : type;
  l.out = block != 0 ? std::uint32_t{PENSTOCK_INT8} : out_type;
  l.in_bytes = penstock_operand_bytes(l.in, block, l.shard);
  l.out_bytes = penstock_operand_bytes(l.out, block, l.shard);
  l.whole = l.shard * comm_.size() == count;
  return l;
}

Status Fused::accepts(const penstock_descriptor& descriptor, const char* what) const {
  return engine_->accepts(descriptor).with_context(what);
}

Status Fused::execute(const penstock_descriptor& descriptor) {
  if (descriptor.count == 0) return {};
  PENSTOCK_CHECK(queue_->submit(descriptor), "the queue is empty between two calls");
  penstock_completion completion{};
  while (!queue_->poll(&completion)) engine_->advance(*queue_);
  return describe_refusal(descriptor, completion.status, completion.field, completion.detail);
}

Status Fused::exchange(const void* send, std::uint64_t count, std::uint32_t type,
                       std::uint32_t block, const Layout& l) {
  const std::uint64_t all = l.in_bytes * comm_.size();
  grow(&incoming_, all);
  const void* parts = send;
  if (block != 0) {
    grow(&outgoing_, all);
    PENSTOCK_TRY(execute(conversion(type, l.in, block, count, send, outgoing_.data())));
    parts = outgoing_.data();
  } else if (!l.whole) {
    grow(&outgoing_, all);
    std::memcpy(outgoing_.data(), send, count * penstock_type_size(type));
    parts = outgoing_.data();
  }
  return comm_.run(bytes_call(Collective::all_to_all, parts, incoming_.data(), l.in_bytes));
}

void Fused::set_sources(const Layout& l, penstock_descriptor* d) {
  list_.resize(comm_.size());
  for (std::uint32_t r = 0; r < comm_.size(); ++r)
    list_[r] = penstock_address_host(incoming_.data() + r * l.in_bytes);
  if ((d->flags & PENSTOCK_FLAG_SRC_LIST) != 0)
    d->src[0] = penstock_address_host(list_.data());
  else
    std::copy(list_.begin(), list_.end(), d->src);
}

// `d` says which fold; sources, destination and count are set here.
Status Fused::fold(const FusedCall& call, penstock_descriptor d) {
  const Layout l = layout(call.count, call.type, call.out_type, call.block);
  PENSTOCK_TRY(exchange(call.send, call.count, call.type, call.block, l));
  d.count = l.here;
  set_sources(l, &d);
  grow(&shard_, l.out_bytes);
  d.dst[0] = penstock_address_host(shard_.data());
  PENSTOCK_TRY(execute(d));
  void* all = call.recv;
  if (call.block != 0 || !l.whole) {
    grow(&gathered_, l.out_bytes * comm_.size());
    all = gathered_.data();
  }
  PENSTOCK_TRY(comm_.run(bytes_call(Collective::all_gather, shard_.data(), all, l.out_bytes)));
  if (call.block != 0)
    return execute(conversion(l.out, call.out_type, call.block, call.count, all, call.recv));
  if (!l.whole) std::memcpy(call.recv, all, call.count * penstock_type_size(call.out_type));
  return {};
}

namespace {

Status check_call(const FusedCall& call) {
  if (call.type >= PENSTOCK_TYPE_COUNT || call.out_type >= PENSTOCK_TYPE_COUNT)
    return error(Code::invalid_argument, "type {} to {}: a type is 0 to {}", call.type,
                 call.out_type, PENSTOCK_TYPE_COUNT - 1);
  if (call.redop >= PENSTOCK_REDOP_COUNT)
    return error(Code::invalid_argument, "redop {}: a reduction is 0 to {}", call.redop,
                 PENSTOCK_REDOP_COUNT - 1);
  if (call.block != 0 && call.block != 32 && call.block != 64)
    return error(Code::invalid_argument, "block {}: a block has 32 or 64 elements, 0 for none",
                 call.block);
  if (call.block != 0 && (penstock_fold_type(call.type, 0) != PENSTOCK_F32 ||
                          penstock_fold_type(call.out_type, 0) != PENSTOCK_F32))
    return error(Code::unsupported, "{} to {} in blocks: a block is made from floats up to f32",
                 penstock_type_name(call.type), penstock_type_name(call.out_type));
  if (call.count > PENSTOCK_MAX_COUNT)
    return error(Code::invalid_argument, "count {}: at most 2^48 elements", call.count);
  if (call.count != 0 && (call.send == nullptr || call.recv == nullptr))
    return error(Code::invalid_argument, "{} is null with a count of {}",
                 call.send == nullptr ? "send" : "recv", call.count);
  return {};
}

// Types of a call's three descriptors, for accepts() before anything is exchanged: addresses are
// any that are well formed.
penstock_descriptor probe(penstock_descriptor d) {
  for (std::uint32_t s = 0; s < std::min<std::uint32_t>(d.n_src, PENSTOCK_INLINE_SOURCES); ++s)
    d.src[s] = penstock_address_host(nullptr);
  if ((d.flags & PENSTOCK_FLAG_SRC_LIST) != 0)
    std::fill(d.src + 1, d.src + PENSTOCK_INLINE_SOURCES, 0);
  for (std::uint32_t i = 0; i < d.n_dst; ++i)
    d.dst[i] = penstock_address_make(PENSTOCK_SPACE_HOST, 8 * i);
  return d;
}

}  // namespace

Status Fused::all_reduce_here(const FusedCall& call) {
  constexpr const char* kWhat = "fused all_reduce";
  PENSTOCK_TRY(check_call(call).with_context(kWhat));
  const Layout l = layout(call.count, call.type, call.out_type, call.block);
  penstock_descriptor d = reduce_of(l.in, l.out, call.redop, call.block, comm_.size(), call.count);
  d.scale = call.scale;
  PENSTOCK_TRY(accepts(probe(d), kWhat));
  if (call.block != 0) {
    for (const auto& [in, out] : {std::pair{call.type, l.in}, {l.out, call.out_type}})
      PENSTOCK_TRY(accepts(probe(reduce_of(in, out, PENSTOCK_SUM, call.block, 1, 1)), kWhat));
  }
  return fold(call, d);
}

Status Fused::average_here(const FusedCall& call, double weight) {
  constexpr const char* kWhat = "fused average";
  PENSTOCK_TRY(check_call(call).with_context(kWhat));
  if (call.redop != PENSTOCK_AVG || call.scale != 0)
    return error(Code::invalid_argument,
                 "{}: redop is {} and scale {:#x}; they have to be avg and 0", kWhat,
                 penstock_redop_name(call.redop), call.scale);
  const Layout l = layout(call.count, call.type, call.out_type, call.block);
  penstock_descriptor d =
      reduce_of(l.in, l.out, PENSTOCK_AVG, call.block, comm_.size(), call.count);
  d.flags |= PENSTOCK_FLAG_WEIGHTS;
  d.scale = penstock_address_host(nullptr);
  PENSTOCK_TRY(accepts(probe(d), kWhat));
  if (call.block != 0) {
    for (const auto& [in, out] : {std::pair{call.type, l.in}, {l.out, call.out_type}})
      PENSTOCK_TRY(accepts(probe(reduce_of(in, out, PENSTOCK_SUM, call.block, 1, 1)), kWhat));
  }
  alignas(8) double wide[PENSTOCK_MAX_SOURCES];
  alignas(8) float narrow[PENSTOCK_MAX_SOURCES];
  const auto own = static_cast<float>(weight);
  const bool is_wide = call.type == PENSTOCK_F64;
  PENSTOCK_TRY(comm_.run(is_wide ? bytes_call(Collective::all_gather, &weight, wide, sizeof weight)
                                 : bytes_call(Collective::all_gather, &own, narrow, sizeof own)));
  bool any = false;
  for (std::uint32_t r = 0; r < comm_.size(); ++r)
    any = any || (is_wide ? wide[r] != 0 : narrow[r] != 0);
  if (!any)
    return error(Code::invalid_argument,
                 "{}: every rank's weight is 0; at least one has to take part", kWhat);
  d.scale = penstock_address_host(is_wide ? static_cast<void*>(wide) : narrow);
  return fold(call, d);
}

Status Fused::outer_step_here(const OuterStepCall& call) {
  constexpr const char* kWhat = "fused outer step";
  const FusedCall as_call{call.deltas,  call.parameters, call.count, call.type,
                          PENSTOCK_F32, PENSTOCK_AVG,    0,          call.block};
  PENSTOCK_TRY(check_call(as_call).with_context(kWhat));
  const Layout l = layout(call.count, call.type, PENSTOCK_F32, call.block);
  if (l.here != 0 && call.momentum == nullptr)
    return error(Code::invalid_argument, "{}: momentum is null with a shard of {}", kWhat, l.here);
  penstock_descriptor d =
      reduce_of(l.in, PENSTOCK_F32, PENSTOCK_AVG, call.block, comm_.size(), call.count);
  d.opcode = PENSTOCK_OP_OUTER_STEP;
  d.n_dst = 2;
  d.scale = std::bit_cast<std::uint32_t>(call.learning_rate) |
            std::uint64_t{std::bit_cast<std::uint32_t>(call.momentum_factor)} << 32;
  PENSTOCK_TRY(accepts(probe(d), kWhat));
  if (call.block != 0)
    PENSTOCK_TRY(accepts(probe(reduce_of(call.type, l.in, PENSTOCK_SUM, call.block, 1, 1)), kWhat));
  PENSTOCK_TRY(exchange(call.deltas, call.count, call.type, call.block, l));
  d.count = l.here;
  set_sources(l, &d);
  float* own = call.parameters + std::min(call.count, l.shard * comm_.rank());
  d.dst[0] = penstock_address_host(call.momentum);
  d.dst[1] = penstock_address_host(own);
  PENSTOCK_TRY(execute(d));
  const std::uint64_t bytes = l.shard * sizeof(float);
  if (l.whole) return comm_.run(bytes_call(Collective::all_gather, own, call.parameters, bytes));
  grow(&shard_, bytes);
  std::memcpy(shard_.data(), own, l.here * sizeof(float));
  grow(&gathered_, bytes * comm_.size());
  PENSTOCK_TRY(
      comm_.run(bytes_call(Collective::all_gather, shard_.data(), gathered_.data(), bytes)));
  std::memcpy(call.parameters, gathered_.data(), call.count * sizeof(float));
  return {};
}

namespace {

bool on_device(std::initializer_list<const void*> buffers) {
  return std::any_of(buffers.begin(), buffers.end(),
                     [](const void* data) { return device_memory_of(data) != nullptr; });
}

// `run` with buffers that the process reaches. What is wrong with the call is said before a buffer
// is read.
template <typename Run>
Status with_host_buffers(const FusedCall& call, const Run& run) {
  find_device_memory();
  if (!on_device({call.send, call.recv}) || !check_call(call).ok()) return run(call);
  PENSTOCK_ASSIGN(HostCopy send, HostCopy::make(const_cast<void*>(call.send),
                                                call.count * penstock_type_size(call.type), true));
  PENSTOCK_ASSIGN(HostCopy recv,
                  HostCopy::make(call.recv, call.count * penstock_type_size(call.out_type), false));
  FusedCall here = call;
  here.send = send.data();
  here.recv = recv.data();
  PENSTOCK_TRY(run(here));
  return recv.write_back();
}

}  // namespace

Status Fused::all_reduce(const FusedCall& call) {
  return with_host_buffers(call, [this](const FusedCall& here) { return all_reduce_here(here); });
}

Status Fused::average(const FusedCall& call, double weight) {
  return with_host_buffers(
      call, [this, weight](const FusedCall& here) { return average_here(here, weight); });
}

Status Fused::outer_step(const OuterStepCall& call) {
  find_device_memory();
  const bool sound =
      call.type < PENSTOCK_TYPE_COUNT && call.count <= PENSTOCK_MAX_COUNT && call.count != 0;
  if (!sound || !on_device({call.deltas, call.parameters, call.momentum}))
    return outer_step_here(call);
  PENSTOCK_ASSIGN(HostCopy deltas,
                  HostCopy::make(const_cast<void*>(call.deltas),
                                 call.count * penstock_type_size(call.type), true));
  PENSTOCK_ASSIGN(HostCopy parameters,
                  HostCopy::make(call.parameters, call.count * sizeof(float), true));
  PENSTOCK_ASSIGN(
      HostCopy momentum,
      HostCopy::make(call.momentum, shard(call.count, call.block) * sizeof(float), true));
  OuterStepCall here = call;
  here.deltas = deltas.data();
  here.parameters = static_cast<float*>(parameters.data());
  here.momentum = static_cast<float*>(momentum.data());
  PENSTOCK_TRY(outer_step_here(here));
  PENSTOCK_TRY(parameters.write_back());
  return momentum.write_back();
}

}  // namespace penstock
