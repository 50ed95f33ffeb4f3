// Kernels, compiled once for a device and kept on disk.
#ifndef PENSTOCK_DRIVERS_OPENCL_PROGRAM_H_
#define PENSTOCK_DRIVERS_OPENCL_PROGRAM_H_

#include <string>

#include "penstock/drivers/opencl/binary_cache.h"
#include "penstock/drivers/opencl/device_choice.h"

namespace penstock::opencl {

struct ProgramSource {
  std::string name;  // for people: "folds"
  std::string text;
  std::string options;  // of the compiler, besides those of the device
};

// The programs of drivers/kernels.
ProgramSource fold_source();

struct Program {
  cl::Program program;
  bool from_cache = false;
};

// What tells a compiled program from all others.
std::string program_identity(const DeviceTraits& traits, const ProgramSource& source);

// From the cache if it is there and the runtime takes it; else compiled, and kept. unsupported with
// the first lines of the compiler's log if it does not compile. A cache that cannot be written is
// logged, and no error.
Result<Program> build_program(const cl::Context& context, const FoundDevice& found,
                              const ProgramSource& source, const BinaryCache& cache);

}  // namespace penstock::opencl
#endif
