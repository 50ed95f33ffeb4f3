// The one place that includes OpenCL's C++ interface. Its calls throw cl::Error, which names the
// call; guarded() of error.h makes a Status of it at the border of each of this folder's functions.
#ifndef PENSTOCK_DRIVERS_OPENCL_OPENCL_H_
#define PENSTOCK_DRIVERS_OPENCL_OPENCL_H_

#define CL_HPP_TARGET_OPENCL_VERSION 300
#define CL_HPP_MINIMUM_OPENCL_VERSION 200
#define CL_HPP_ENABLE_EXCEPTIONS
#include <CL/opencl.hpp>

#endif
