# What comes from outside. Link these targets:
#   fmt::fmt  spdlog::spdlog  CLI11::CLI11  nlohmann_json::nlohmann_json  PkgConfig::PENSTOCK_HWY
#   Threads::Threads
# Their Debian packages are listed in sdk/packaging/debian-packages.txt.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
pkg_check_modules(PENSTOCK_HWY REQUIRED IMPORTED_TARGET libhwy)

if(PENSTOCK_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
