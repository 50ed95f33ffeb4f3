#include "penstock/drivers/opencl/table_program.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "penstock/drivers/opencl/error.h"
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

// Groups of one work item on a processor, where barriers would only cost.
kernels::TableLimits table_limits(const DeviceTraits& traits) {
  if (is_cpu(traits)) return {1, std::max(traits.units, 1u), kRowsOfOneCore};
  const std::uint64_t lanes = std::clamp<std::uint64_t>(traits.max_group, 1, 256);
  return {static_cast<std::uint32_t>(std::bit_floor(lanes)), std::max(traits.units, 1u) * 4,
          kRowsOfOneGroup};
}

}  // namespace

TableProgram::TableProgram(cl::Context context, FoundDevice found, BinaryCache cache)
    : context_(std::move(context)), found_(std::move(found)), cache_(std::move(cache)) {}

Result<Tables> TableProgram::get() const {
  const std::lock_guard lock(mutex_);
  if (!tables_.has_value()) tables_.emplace(make());
  return *tables_;
}

Result<Tables> TableProgram::make() const {
  kernels::TableLimits limits = table_limits(found_.traits);
  const ProgramSource source = {"tables", kTables,
                                fmt::format("-DSELECT_MAX_LANES={}{}", limits.lanes,
                                            limits.lanes == 1 ? " -DPENSTOCK_ONE_LANE=1" : "")};
  PENSTOCK_ASSIGN(Program built, build_program(context_, found_, source, cache_));
  // A kernel with many registers may not run in groups as large as the device's.
  const auto narrow = [&]() -> Status {
    std::vector<cl::Kernel> kernels;
    built.program.createKernels(&kernels);
    for (const cl::Kernel& kernel : kernels) {
      const auto most = kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(found_.device);
      limits.lanes = std::min(
          limits.lanes, static_cast<std::uint32_t>(std::bit_floor(std::max<std::size_t>(most, 1))));
    }
    return {};
  };
  PENSTOCK_TRY(guarded(found_.traits.name, narrow));
  return Tables{built.program, limits};
}

}  // namespace penstock::opencl
