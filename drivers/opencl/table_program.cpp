#include "penstock/drivers/opencl/table_program.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "penstock/drivers/opencl/program.h"

namespace penstock::opencl {
namespace {

constexpr const char* kTables =
#include "table_kernels.inc"
    ;

// What a processor places without help sooner than launches take.
constexpr std::uint32_t kRowsOfOneCore = 8192;
// What one group of a GPU does in about the time of three launches.
constexpr std::uint32_t kRowsOfOneGroup = 2048;

}  // namespace

kernels::TableLimits table_limits(const DeviceTraits& traits) {
  if (is_cpu(traits)) return {1, std::max(traits.units, 1u), kRowsOfOneCore};
  const std::uint64_t lanes = std::clamp<std::uint64_t>(traits.max_group, 1, 256);
  return {static_cast<std::uint32_t>(std::bit_floor(lanes)), std::max(traits.units, 1u) * 4,
          kRowsOfOneGroup};
}

TableProgram::TableProgram(cl::Context context, FoundDevice found, BinaryCache cache)
    : context_(std::move(context)), found_(std::move(found)), cache_(std::move(cache)) {}

Result<cl::Program> TableProgram::get() const {
  const std::lock_guard lock(mutex_);
  if (!program_.has_value()) {
    const kernels::TableLimits limits = table_limits(found_.traits);
    const ProgramSource source = {"tables", kTables,
                                  fmt::format("-DSELECT_MAX_LANES={}{}", limits.lanes,
                                              limits.lanes == 1 ? " -DPENSTOCK_ONE_LANE=1" : "")};
    Result<Program> built = build_program(context_, found_, source, cache_);
    if (built.ok())
      program_.emplace(built.value().program);
    else
      program_.emplace(built.status());
  }
  return *program_;
}

}  // namespace penstock::opencl
