// The kernels of SELECT and UPDATE on a device: a program of their own, compiled when a queue first
// needs it.
#ifndef PENSTOCK_DRIVERS_OPENCL_TABLE_PROGRAM_H_
#define PENSTOCK_DRIVERS_OPENCL_TABLE_PROGRAM_H_

#include <mutex>
#include <optional>

#include "penstock/drivers/kernels/table_launch.h"
#include "penstock/drivers/opencl/binary_cache.h"
#include "penstock/drivers/opencl/device_choice.h"

namespace penstock::opencl {

struct Tables {
  cl::Program program;
  kernels::TableLimits limits;
};

// Of one context. Thread-safe.
class TableProgram {
 public:
  TableProgram(cl::Context context, FoundDevice found, BinaryCache cache);
  // Compiles it, or takes it from the cache, at the first call; an error stays. unsupported if it
  // does not compile.
  Result<Tables> get() const;

 private:
  Result<Tables> make() const;

  const cl::Context context_;
  const FoundDevice found_;
  const BinaryCache cache_;
  mutable std::mutex mutex_;
  mutable std::optional<Result<Tables>> tables_;
};

}  // namespace penstock::opencl
#endif
