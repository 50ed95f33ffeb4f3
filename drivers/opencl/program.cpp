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

Status describe(const cl::BuildError& failure, const std::string& device,
                const ProgramSource& source) {
  std::string log;
  for (const auto& [of, text] : failure.getBuildLog()) log += text;
  const Status status = error_of(failure, device);
  // A wrong option has a code of its own that says nothing of compiling.
  return error(Code::unsupported, "the kernels ({}) do not compile: {}: {}", source.name,
               status.message(), first_lines(log));
}

cl::Program from_binary(const cl::Context& context, const FoundDevice& found,
                        const std::vector<unsigned char>& binary, const std::string& options) {
  std::vector<cl_int> statuses;
  cl::Program program(context, {found.device}, cl::Program::Binaries{binary}, &statuses);
  program.build(found.device, options.c_str());
  return program;
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
  if (const auto binary = cache.load(identity)) {
    try {
      return Program{from_binary(context, found, *binary, options), true};
    } catch (const cl::Error& failure) {
      log::info("opencl: {} is not used: {}", cache.path_of(identity),
                error_of(failure, name).message());
    }
  }
  const auto compile = [&]() -> Result<Program> {
    cl::Program program(context, source.text, false);
    try {
      program.build(found.device, options.c_str());
    } catch (const cl::BuildError& failure) {
      return describe(failure, name, source);
    }
    return Program{program, false};
  };
  PENSTOCK_ASSIGN(Program built, guarded(name, compile));
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
