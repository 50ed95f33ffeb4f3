# What comes from outside. Link these targets:
#   fmt::fmt  spdlog::spdlog  CLI11::CLI11  nlohmann_json::nlohmann_json  PkgConfig::PENSTOCK_HWY
#   PkgConfig::PENSTOCK_YAML
#   Threads::Threads
# Their Debian packages are listed in sdk/packaging/debian-packages.txt.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
# Parts of the sources are made by scripts, and tests are.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
pkg_check_modules(PENSTOCK_HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(PENSTOCK_YAML REQUIRED IMPORTED_TARGET yaml-cpp)

# The live front ends, `penstock extender` and `penstock scheduler`, need three more libraries. Without
# them PENSTOCK_SERVE is empty, and the two say that they are unsupported in this build.
pkg_check_modules(PENSTOCK_HTTPLIB QUIET IMPORTED_TARGET cpp-httplib)
pkg_check_modules(PENSTOCK_PROMETHEUS QUIET IMPORTED_TARGET prometheus-cpp-core)
find_package(OpenSSL QUIET)
set(PENSTOCK_SERVE)
set(PENSTOCK_SERVE_MISSING)
if(NOT PENSTOCK_HTTPLIB_FOUND)
  list(APPEND PENSTOCK_SERVE_MISSING libcpp-httplib-dev)
endif()
if(NOT PENSTOCK_PROMETHEUS_FOUND)
  list(APPEND PENSTOCK_SERVE_MISSING prometheus-cpp-dev)
endif()
if(NOT OPENSSL_FOUND)
  list(APPEND PENSTOCK_SERVE_MISSING libssl-dev)
endif()
if(NOT PENSTOCK_SERVE_MISSING)
  # Its connections are bounded through a part of the library that later versions changed.
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES PkgConfig::PENSTOCK_HTTPLIB OpenSSL::SSL Threads::Threads)
  check_cxx_source_compiles("
    #include <httplib.h>
    class Server : public httplib::Server {
      bool process_and_close_socket(socket_t) override {
        bool closed = false;
        return process_request(*stream, false, closed, [](httplib::Request&) {});
      }
      httplib::Stream* stream = nullptr;
    };
    int main() { Server server; return server.is_running() ? 1 : 0; }" PENSTOCK_HTTPLIB_FITS)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(PENSTOCK_HTTPLIB_FITS)
    set(PENSTOCK_SERVE ON)
  else()
    set(PENSTOCK_SERVE_MISSING "a libcpp-httplib-dev of version 0.11")
  endif()
endif()

# Ways to reach devices. Each is ON or OFF here, and PENSTOCK_WITH_<NAME> decides otherwise.
#   PENSTOCK_OPENCL  OpenCL::OpenCL
#   PENSTOCK_CUDA    PENSTOCK_NVCC, the compiler of the kernels; nothing of it is linked
#   PENSTOCK_XRT     PENSTOCK_XRT_INCLUDE, PENSTOCK_XRT_COREUTIL and PkgConfig::PENSTOCK_UUID
find_package(OpenCL QUIET)
find_path(PENSTOCK_OPENCL_HPP CL/opencl.hpp)
penstock_optional(OPENCL PENSTOCK_OPENCL NEEDS "ocl-icd-opencl-dev and opencl-clhpp-headers"
  FOUND "${OpenCL_FOUND}" "${PENSTOCK_OPENCL_HPP}")
find_program(PENSTOCK_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
penstock_optional(CUDA PENSTOCK_CUDA NEEDS "nvcc of CUDA 12.8 or newer" FOUND "${PENSTOCK_NVCC}")
# The pkg-config file of Debian's XRT names libraries that it does not have.
find_path(PENSTOCK_XRT_INCLUDE xrt/xrt_device.h PATH_SUFFIXES xrt)
find_library(PENSTOCK_XRT_COREUTIL xrt_coreutil)
pkg_check_modules(PENSTOCK_UUID QUIET IMPORTED_TARGET uuid)
penstock_optional(XRT PENSTOCK_XRT NEEDS "libxrt-dev and uuid-dev"
  FOUND "${PENSTOCK_XRT_INCLUDE}" "${PENSTOCK_XRT_COREUTIL}" "${PENSTOCK_UUID_FOUND}")
mark_as_advanced(PENSTOCK_OPENCL_HPP PENSTOCK_NVCC PENSTOCK_XRT_INCLUDE PENSTOCK_XRT_COREUTIL)

if(PENSTOCK_TESTS)
  find_package(GTest REQUIRED)
endif()
