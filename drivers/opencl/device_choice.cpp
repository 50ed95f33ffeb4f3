#include "penstock/drivers/opencl/device_choice.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>

#include "penstock/drivers/kernels/select_plan.h"
#include "penstock/drivers/opencl/error.h"
#include "penstock/engine/accept.h"

namespace penstock::opencl {
namespace {

std::string trimmed(const std::string& text) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0 || c == 0; };
  const auto begin = std::find_if_not(text.begin(), text.end(), blank);
  const auto end = std::find_if_not(text.rbegin(), std::make_reverse_iterator(begin), blank);
  return {begin, end.base()};
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

const char* kind(const DeviceTraits& traits) {
  if ((traits.type & CL_DEVICE_TYPE_GPU) != 0) return "GPU";
  if ((traits.type & CL_DEVICE_TYPE_ACCELERATOR) != 0) return "accelerator";
  return is_cpu(traits) ? "CPU" : "device";
}

std::string why_unusable(const cl::Device& device) {
  if (device.getInfo<CL_DEVICE_AVAILABLE>() == CL_FALSE) return "it is not available";
  if (device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>() == CL_FALSE) return "it has no compiler";
  if (device.getInfo<CL_DEVICE_ENDIAN_LITTLE>() == CL_FALSE) return "it is not little-endian";
  if (device.getInfo<CL_DEVICE_ADDRESS_BITS>() != 64) return "its addresses are not 64 bits wide";
  // The kernels take their operands' addresses by value.
  constexpr std::size_t kParameters = 1000;
  if (device.getInfo<CL_DEVICE_MAX_PARAMETER_SIZE>() < kParameters)
    return fmt::format("a kernel's arguments have less than {} bytes", kParameters);
  return {};
}

DeviceTraits read_traits(const cl::Platform& platform, const cl::Device& device) {
  DeviceTraits t;
  t.name = trimmed(device.getInfo<CL_DEVICE_NAME>());
  t.platform = trimmed(platform.getInfo<CL_PLATFORM_NAME>()) + ", " +
               trimmed(platform.getInfo<CL_PLATFORM_VERSION>());
  t.driver = trimmed(device.getInfo<CL_DRIVER_VERSION>());
  t.type = device.getInfo<CL_DEVICE_TYPE>();
  t.units = std::max(device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>(), 1u);
  t.max_group = device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>();
  t.memory_bytes = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
  t.max_allocation = device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>();
  constexpr cl_device_fp_config kExact = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST;
  t.f64 = device.getInfo<CL_DEVICE_EXTENSIONS>().find("cl_khr_fp64") != std::string::npos &&
          (device.getInfo<CL_DEVICE_DOUBLE_FP_CONFIG>() & kExact) == kExact;
  t.exact_f32 = (device.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>() & kExact) == kExact;
  // Deprecated in OpenCL 2.0 without a successor, and answered by all runtimes.
  constexpr cl_device_info kUnifiedMemory = 0x1035;
  cl_bool unified = CL_FALSE;
  t.shares_memory =
      clGetDeviceInfo(device(), kUnifiedMemory, sizeof(unified), &unified, nullptr) == CL_SUCCESS &&
      unified != CL_FALSE;
  cl_device_svm_capabilities svm = 0;
  t.system_svm = clGetDeviceInfo(device(), CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm,
                                 nullptr) == CL_SUCCESS &&
                 (svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) != 0;
  t.unusable = why_unusable(device);
  return t;
}

std::string names(const std::vector<FoundDevice>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i)
    text += fmt::format("{}{}: {} ({})", i == 0 ? "" : ", ", i, devices[i].traits.name,
                        kind(devices[i].traits));
  return text;
}

bool usable(const FoundDevice& found) { return found.traits.unusable.empty(); }

Result<FoundDevice> best(const std::vector<FoundDevice>& devices) {
  for (const cl_device_type type :
       {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_CUSTOM})
    for (const FoundDevice& found : devices)
      if (usable(found) && (found.traits.type & type) != 0) return found;
  std::string reasons;
  for (const FoundDevice& found : devices)
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", found.traits.name,
                           found.traits.unusable);
  return error(Code::unsupported, "no OpenCL device can be used: {}", reasons);
}

bool parse_number(const std::string& text, std::uint64_t* number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return code == std::errc() && end == text.data() + text.size();
}

Status parse_option(const std::string& key, const std::string& value, Options* options) {
  std::uint64_t number = 0;
  if (key == "staged") {
    if (value != "0" && value != "1")
      return error(Code::invalid_argument, "option staged={}: it is 0 or 1", value);
    options->staged = value == "1";
    return {};
  }
  if (key == "cache") {
    if (value.empty())
      return error(Code::invalid_argument, "option cache: it names a folder, or is none");
    options->cache = value;
    return {};
  }
  if (key == "chunk") {
    constexpr std::uint64_t kMin = std::uint64_t{64} << 10, kMax = std::uint64_t{1} << 30;
    if (!parse_number(value, &number) || number < kMin || number > kMax)
      return error(Code::invalid_argument, "option chunk={}: it is {} to {} bytes", value, kMin,
                   kMax);
    options->chunk_bytes = number;
    return {};
  }
  return error(Code::invalid_argument, "there is no option \"{}\"; there are staged, cache, chunk",
               key);
}

}  // namespace

Result<Options> Options::parse(const std::string& text) {
  Options options;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(';', start), text.size());
    const std::string part = trimmed(text.substr(start, end - start));
    const std::size_t equals = part.find('=');
    const bool names_device = start == 0 && equals == std::string::npos && part != "staged";
    start = end + 1;
    if (names_device) {
      options.device = part;
    } else if (!part.empty()) {
      const std::string value = equals == std::string::npos ? "1" : part.substr(equals + 1);
      PENSTOCK_TRY(parse_option(part.substr(0, equals), value, &options));
    }
  }
  return options;
}

Result<std::vector<FoundDevice>> list_devices() {
  const auto read = []() -> Result<std::vector<FoundDevice>> {
    std::vector<cl::Platform> platforms;
    try {
      cl::Platform::get(&platforms);
    } catch (const cl::Error& failure) {
      if (failure.err() != CL_PLATFORM_NOT_FOUND_KHR) throw;
    }
    if (platforms.empty())
      return error(Code::not_found,
                   "no OpenCL platform is installed; on Debian, pocl-opencl-icd makes a device of "
                   "the processor");
    std::vector<FoundDevice> found;
    for (const cl::Platform& platform : platforms) {
      std::vector<cl::Device> devices;
      try {
        platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
      } catch (const cl::Error& failure) {
        if (failure.err() != CL_DEVICE_NOT_FOUND) throw;
      }
      for (const cl::Device& device : devices)
        found.push_back({device, read_traits(platform, device)});
    }
    if (found.empty())
      return error(Code::not_found, "no OpenCL platform has a device; there {} {}",
                   platforms.size() == 1 ? "is" : "are",
                   trimmed(platforms.front().getInfo<CL_PLATFORM_NAME>()));
    return found;
  };
  return guarded("the OpenCL runtime", read);
}

Result<FoundDevice> choose_device(const std::string& name) {
  PENSTOCK_ASSIGN(const std::vector<FoundDevice> devices, list_devices());
  if (name.empty()) return best(devices);
  const FoundDevice* chosen = nullptr;
  std::uint64_t index = 0;
  if (parse_number(name, &index)) {
    if (index < devices.size()) chosen = &devices[index];
  } else {
    for (const FoundDevice& found : devices) {
      if (lower(found.traits.name).find(lower(name)) == std::string::npos) continue;
      // Of several with one name, the first that can be used.
      if (chosen == nullptr || (!usable(*chosen) && usable(found))) chosen = &found;
    }
  }
  if (chosen == nullptr)
    return error(Code::not_found, "no OpenCL device is called \"{}\"; there are {}", name,
                 names(devices));
  if (!usable(*chosen))
    return error(Code::unsupported, "OpenCL device {} cannot be used: {}", chosen->traits.name,
                 chosen->traits.unusable);
  return *chosen;
}

Capabilities capabilities_of(const DeviceTraits& traits) {
  Capabilities c;
  c.name = "opencl";
  c.description = fmt::format("OpenCL on {} ({}, {} units; {})", traits.name, kind(traits),
                              traits.units, traits.platform);
  if (!traits.exact_f32)
    c.description += "; no floats, whose subnormals or rounding it does not keep";
  else if (!traits.f64)
    c.description += "; no f64";
  constexpr std::uint32_t kAll = (1u << PENSTOCK_REDOP_COUNT) - 1;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    const bool is_float = penstock_fold_type(type, 0) == PENSTOCK_F32;
    const bool folds = type == PENSTOCK_F64 ? traits.f64 : traits.exact_f32 || !is_float;
    c.redops[type] = folds ? kAll : 0;
  }
  if (traits.exact_f32) convert_in_f32(&c);
  c.opcodes = 1u << PENSTOCK_OP_NOP | 1u << PENSTOCK_OP_COPY | 1u << PENSTOCK_OP_REDUCE |
              1u << PENSTOCK_OP_SIGNAL | 1u << PENSTOCK_OP_WAIT | 1u << PENSTOCK_OP_BARRIER;
  if (traits.exact_f32) c.opcodes |= 1u << PENSTOCK_OP_OUTER_STEP;
  c.weights = traits.exact_f32;
  c.max_sources = PENSTOCK_MAX_SOURCES;
  c.max_destinations = PENSTOCK_MAX_DESTINATIONS;
  c.max_bytes = PENSTOCK_MAX_COUNT * 8;
  c.opcodes |= 1u << PENSTOCK_OP_SELECT | 1u << PENSTOCK_OP_UPDATE;
  c.max_rows = PENSTOCK_MAX_ROWS;
  c.select = kernels::select_capabilities(traits.f64);
  c.host_memory = true;
  c.synchronous = false;
  return c;
}

}  // namespace penstock::opencl
