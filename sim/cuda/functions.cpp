// Launches of the kernels' host dialect, with every address in their arguments translated.
#include <array>
#include <cstring>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/drivers/kernels/arguments.h"
#include "penstock/drivers/kernels/host_kernels.h"
#include "penstock/drivers/kernels/select_types.h"
#include "penstock/drivers/kernels/update_types.h"
#include "penstock/sim/cuda/machine.h"

namespace penstock::sim::cuda {

using kernels::copy_arguments;
using kernels::outer_step_arguments;
using kernels::reduce_arguments;
using kernels::reduce_weights;
using kernels::select_arguments;
using kernels::u32;
using kernels::u64;
using kernels::update_arguments;

struct Function {
  enum class Kind { copy, reduce, convert, outer_step, select, update } kind;
  const kernels::HostKernel* kernel;
  u32 type;  // of the sources; INT8 with a block where it is block-scaled
};

namespace {

constexpr u32 kMostLanes = 1024;

// Replaces a device address by the process's; false if there are not so many bytes.
bool translate(u64* address, u64 bytes) {
  if (bytes == 0) return true;
  std::byte* at = Machine::instance().memory.translate(*address, bytes);
  if (at == nullptr && Machine::instance().options.pageable != 0 &&
      !Machine::instance().memory.find(*address))
    return true;
  *address = reinterpret_cast<std::uintptr_t>(at);
  return at != nullptr;
}

bool translate(const Function&, copy_arguments* a) {
  bool ok = a->n_dst <= KERNEL_DESTINATIONS && translate(&a->src, a->bytes);
  for (u32 d = 0; ok && d < a->n_dst; ++d) ok = translate(&a->dst[d], a->bytes);
  return ok;
}
bool translate(const Function& f, reduce_arguments* a) {
  const u32 block = f.kind == Function::Kind::convert ? a->block : 0;
  bool ok = a->n_src <= KERNEL_SOURCES && a->n_dst <= KERNEL_DESTINATIONS;
  for (u32 s = 0; ok && s < a->n_src; ++s)
    ok = translate(&a->src[s], penstock_operand_bytes(f.type, block, a->count));
  for (u32 d = 0; ok && d < a->n_dst; ++d)
    ok = translate(&a->dst[d], penstock_operand_bytes(a->out_type, block, a->count));
  return ok;
}
bool translate(const Function& f, outer_step_arguments* a) {
  bool ok = a->n_src <= KERNEL_SOURCES;
  for (u32 s = 0; ok && s < a->n_src; ++s)
    ok = translate(&a->src[s], penstock_operand_bytes(f.type, a->block, a->count));
  return ok && translate(&a->momentum, a->count * 4) && translate(&a->parameters, a->count * 4);
}
// What they point to has sizes of its own; that it begins in memory of the device is checked.
bool translate(const Function&, select_arguments* a) {
  return translate(&a->table, 64) && translate(&a->inputs, 1) && translate(&a->scratch, 1) &&
         translate(&a->results, 8);
}
bool translate(const Function&, update_arguments* a) {
  return translate(&a->table, 64) && translate(&a->inputs, 1) && translate(&a->scratch, 1) &&
         translate(&a->results, 8);
}

template <typename Arguments>
std::function<bool()> bind(const Function& function, u32 groups, u32 lanes,
                           void* const* parameters) {
  Arguments arguments;
  std::memcpy(&arguments, parameters[0], sizeof arguments);
  reduce_weights weights{};
  if constexpr (std::is_same_v<Arguments, reduce_arguments>)
    std::memcpy(&weights, parameters[1], sizeof weights);
  return [&function, groups, lanes, arguments, weights]() mutable {
    if (!translate(function, &arguments)) return false;
    void* pointers[] = {&arguments, &weights};
    kernels::run_on_host(*function.kernel, pointers, groups, lanes);
    return true;
  };
}

}  // namespace

const Function* find_function(const std::string& name) {
  static std::mutex mutex;
  static auto* const made = new std::map<std::string, Function>;
  const std::lock_guard lock(mutex);
  if (const auto found = made->find(name); found != made->end()) return &found->second;
  const kernels::HostKernel* kernel = kernels::find_host_kernel(name);
  if (kernel == nullptr) return nullptr;
  using Kind = Function::Kind;
  const std::pair<const char*, Kind> kinds[] = {
      {"penstock_copy", Kind::copy},        {"penstock_reduce_", Kind::reduce},
      {"penstock_convert_", Kind::convert}, {"penstock_outer_step_", Kind::outer_step},
      {"penstock_select_", Kind::select},   {"penstock_update_", Kind::update}};
  for (const auto& [start, kind] : kinds) {
    if (!name.starts_with(start)) continue;
    Function function{kind, kernel, PENSTOCK_INT8};
    const std::string rest = name.substr(std::strlen(start));
    for (u32 type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
      if (rest == penstock_type_name(type)) function.type = type;
    return &made->emplace(name, function).first->second;
  }
  return nullptr;
}

std::function<bool()> make_launch(const Function& function, u32 groups, u32 lanes,
                                  void* const* parameters) {
  if (groups == 0 || lanes == 0 || lanes > kMostLanes) return {};
  switch (function.kind) {
    case Function::Kind::copy:
      return bind<copy_arguments>(function, groups, lanes, parameters);
    case Function::Kind::outer_step:
      return bind<outer_step_arguments>(function, groups, lanes, parameters);
    case Function::Kind::select:
      return bind<select_arguments>(function, groups, lanes, parameters);
    case Function::Kind::update:
      return bind<update_arguments>(function, groups, lanes, parameters);
    default:
      return bind<reduce_arguments>(function, groups, lanes, parameters);
  }
}

}  // namespace penstock::sim::cuda
