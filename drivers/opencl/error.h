// Errors of the OpenCL runtime as Status values.
#ifndef PENSTOCK_DRIVERS_OPENCL_ERROR_H_
#define PENSTOCK_DRIVERS_OPENCL_ERROR_H_

#include <new>
#include <string>

#include "penstock/base/status.h"
#include "penstock/drivers/opencl/opencl.h"

namespace penstock::opencl {

// "CL_OUT_OF_RESOURCES"; "CL error -9999" for a number that has no name.
std::string error_name(cl_int code);

// "clCreateBuffer on DEVICE: CL_MEM_OBJECT_ALLOCATION_FAILURE". no_space where memory is missing,
// not_found for what is not there, unsupported for what the device or its compiler cannot do,
// internal for arguments that are wrong, io_error for the rest.
Status error_of(const cl::Error& failure, const std::string& device);
// Of an event's or a kernel's status, a number below 0.
Status error_of(cl_int code, const std::string& call, const std::string& device);

// Runs what calls OpenCL and returns a Status or a Result.
template <typename Function>
auto guarded(const std::string& device, Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const cl::Error& failure) {
    return error_of(failure, device);
  } catch (const std::bad_alloc&) {
    return error(Code::no_space, "{}: the host has no memory", device);
  }
}

}  // namespace penstock::opencl
#endif
