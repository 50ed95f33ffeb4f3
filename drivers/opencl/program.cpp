#include "penstock/drivers/opencl/program.h"

#include "penstock/base/checksum.h"
#include "penstock/base/log.h"
#include "penstock/drivers/opencl/error.h"

namespace penstock::opencl {
namespace {

constexpr const char* kFolds =
#include "fold_kernels.inc"
    ;

std::string all_options(const DeviceTraits& traits, const ProgramSource& source) {
  std::string options = "-cl-std=CL1.2";
  if (traits.f64) options += " -DPENSTOCK_HAS_F64=1";
  return source.options.empty() ? options : options + " " + source.options;
}

// Compilers' logs can be long.
std::string first_lines(const std::string& log) {
  constexpr int kLines = 5;
  constexpr std::size_t kMost = 1000;
  std::size_t end = 0;
  for (int line = 0; line < kLines && end < log.size(); ++line) {
    const std::size_t next = log.find('\n', end);
    end = next == std::string::npos ? log.size() : next + 1;
  }
  std::string text = log.substr(0, std::min(end, kMost));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text.empty() ? "the compiler says nothing more" : text;
}

// Compiles; the interface in C++ asks for the log even where there is none.
Status compile(const cl::Program& program, const FoundDevice& found, const std::string& options,
               const std::string& what) {
  const cl_device_id device = found.device();
  const cl_int code = clBuildProgram(program(), 1, &device, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return {};
  std::size_t bytes = 0;
  std::string log;
  if (clGetProgramBuildInfo(program(), device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) ==
      CL_SUCCESS) {
    log.resize(bytes);
    if (clGetProgramBuildInfo(program(), device, CL_PROGRAM_BUILD_LOG, bytes, log.data(),
                              nullptr) != CL_SUCCESS)
      log.clear();
  }
  // A wrong option has a code of its own, which is no other case.
  return error(Code::unsupported, "the kernels ({}) do not compile: {}: {}", what,
               error_of(code, "clBuildProgram", found.traits.name).message(), first_lines(log));
}

}  // namespace

ProgramSource fold_source() { return {"folds", kFolds, ""}; }

std::string program_identity(const DeviceTraits& traits, const ProgramSource& source) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{} bytes, {:016x}, {:08x}\n", traits.name,
                     traits.platform, traits.driver, source.name, all_options(traits, source),
                     source.text.size(), fnv1a(source.text),
                     crc32c(source.text.data(), source.text.size()));
}

Result<Program> build_program(const cl::Context& context, const FoundDevice& found,
                              const ProgramSource& source, const BinaryCache& cache) {
  const std::string& name = found.traits.name;
  const std::string identity = program_identity(found.traits, source);
  const std::string options = all_options(found.traits, source);
  const auto from_binary = [&](const std::vector<unsigned char>& binary) -> Result<Program> {
    const cl::Program program(context, {found.device}, cl::Program::Binaries{binary});
    PENSTOCK_TRY(compile(program, found, options, source.name));
    return Program{program, true};
  };
  if (const auto binary = cache.load(identity)) {
    Result<Program> made = guarded(name, [&] { return from_binary(*binary); });
    if (made.ok()) return made;
    log::info("opencl: {} is not used: {}", cache.path_of(identity), made.status().message());
  }
  const auto from_text = [&]() -> Result<Program> {
    const cl::Program program(context, source.text, false);
    PENSTOCK_TRY(compile(program, found, options, source.name));
    return Program{program, false};
  };
  PENSTOCK_ASSIGN(Program built, guarded(name, from_text));
  const auto keep = [&]() -> Status {
    const auto binaries = built.program.getInfo<CL_PROGRAM_BINARIES>();
    if (binaries.size() != 1 || binaries.front().empty()) return {};
    return cache.store(identity, binaries.front());
  };
  if (const Status kept = guarded(name, keep); !kept.ok())
    log::info("opencl: the compiled kernels are not kept: {}", kept.message());
  return built;
}

}  // namespace penstock::opencl
