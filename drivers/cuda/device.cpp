#include "penstock/drivers/cuda/device.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "penstock/drivers/cuda/stream.h"
#include "penstock/drivers/kernels/select_plan.h"
#include "penstock/engine/accept.h"
#include "penstock/engine/speed.h"

// The kernels for all architectures, made by nvcc; the linker puts the file here.
extern "C" const unsigned char penstock_cuda_kernels[];
asm(R"(.section .rodata
.balign 64
.globl penstock_cuda_kernels
.hidden penstock_cuda_kernels
penstock_cuda_kernels:
.incbin ")" PENSTOCK_CUDA_FATBIN R"("
.byte 0
.previous
)");

namespace penstock::cuda {
namespace {

constexpr int kOldestCapability = 8;  // sm_80

Result<int> parse_number(const std::string& key, const std::string& text, int most) {
  int value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || stop != text.data() + text.size() || value < 0 || value > most)
    return error(Code::invalid_argument, "{}={} must be a number from 0 to {}", key, text, most);
  return value;
}

}  // namespace

Result<Options> Options::parse(const std::string& text) {
  Options options;
  std::size_t begin = 0;
  for (bool first = true; begin <= text.size(); first = false) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (first && equals == std::string::npos) {
      PENSTOCK_ASSIGN(options.ordinal, parse_number("device", part, 1023));
    } else if (key == "driver" && !value.empty()) {
      options.driver = value;
    } else if (key == "staged") {
      PENSTOCK_ASSIGN(const int on, parse_number(key, value, 1));
      options.staged = on != 0;
    } else if (key == "graphs") {
      PENSTOCK_ASSIGN(const int on, parse_number(key, value, 1));
      options.graphs = on != 0;
    } else {
      return error(Code::invalid_argument,
                   "\"{}\" is no option: cuda takes a device's number, then driver=FILE, staged=0 "
                   "or 1, graphs=0 or 1, each after a ';'",
                   part);
    }
  }
  return options;
}

Kernels::Kernels(std::shared_ptr<const Context> context, CUmodule module)
    : context_(std::move(context)), module_(module) {
  // Eight groups of 256 are all that a multiprocessor holds at once.
  const int processors = context_->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  most_groups_ = 8 * static_cast<std::uint32_t>(std::max(processors, 1));
}

Result<std::unique_ptr<const Kernels>> Kernels::load(std::shared_ptr<const Context> context) {
  const Driver& driver = context->driver();
  const Current current(driver, context->handle());
  CUmodule module = nullptr;
  PENSTOCK_TRY(
      driver.check(driver.cuModuleLoadData(&module, penstock_cuda_kernels),
                   fmt::format("cuModuleLoadData of the kernels for {}", context->name())));
  std::unique_ptr<Kernels> loaded(new Kernels(std::move(context), module));
  std::vector<std::string> names = {"penstock_copy"};
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
    names.push_back(std::string("penstock_reduce_") + penstock_type_name(type));
  for (const char* type : {"f32", "f16", "bf16", "f8e4m3", "f8e5m2", "block"})
    for (const char* kind : {"penstock_convert_", "penstock_outer_step_"})
      names.push_back(std::string(kind) + type);
  for (const char* name :
       {"select_clear", "select_begin", "select_scan", "select_spread", "select_rank",
        "select_finish", "select_batch", "update_apply", "update_undo"})
    names.push_back(std::string("penstock_") + name);
  for (const std::string& name : names)
    PENSTOCK_TRY(
        driver.check(driver.cuModuleGetFunction(&loaded->functions_[name], module, name.c_str()),
                     "cuModuleGetFunction of " + name));
  return std::unique_ptr<const Kernels>(std::move(loaded));
}

Kernels::~Kernels() {
  const Current current(context_->driver(), context_->handle());
  context_->driver().cuModuleUnload(module_);
}

Result<CUfunction> Kernels::find(const std::string& name) const {
  const auto found = functions_.find(name);
  if (found == functions_.end()) return error(Code::internal, "there is no kernel {}", name);
  return found->second;
}

std::uint32_t Kernels::groups(std::uint64_t items) const {
  const std::uint64_t wanted = (items + kLanes - 1) / kLanes;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, most_groups_));
}

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(const Options& options) {
  PENSTOCK_ASSIGN(const Driver* driver, load_driver(driver_path(options.driver)));
  PENSTOCK_ASSIGN(std::shared_ptr<const Context> context, Context::open(*driver, options.ordinal));
  const int major = context->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  if (major < kOldestCapability)
    return error(Code::unsupported, "{} has compute capability {}; 8.0 (sm_80) is needed",
                 context->name(), major);
  PENSTOCK_ASSIGN(std::unique_ptr<const Kernels> kernels, Kernels::load(context));
  return std::shared_ptr<CudaDevice>(
      new CudaDevice(options, std::move(context), std::move(kernels)));
}

Result<std::unique_ptr<DeviceStream>> CudaDevice::open(Queue& queue) {
  return make_stream(*this, queue.pool());
}

bool CudaDevice::host_reads(const void* data, std::uint64_t) const {
  int ordinal = 0;
  return !is_device_memory(context_->driver(), data, &ordinal);
}

bool CudaDevice::reaches_device_memory(const void* data) const {
  int ordinal = 0;
  return is_device_memory(context_->driver(), data, &ordinal) && ordinal == context_->ordinal();
}

Capabilities CudaDevice::capabilities() const {
  Capabilities c;
  c.name = "cuda";
  c.description =
      fmt::format("{}, sm_{}{}, driver {}.{}{}", context_->name(),
                  context_->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                  context_->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
                  context_->driver().version / 1000, context_->driver().version % 1000 / 10,
                  options_.staged ? ", staged" : "");
  for (const auto op : {PENSTOCK_OP_NOP, PENSTOCK_OP_COPY, PENSTOCK_OP_REDUCE, PENSTOCK_OP_SIGNAL,
                        PENSTOCK_OP_WAIT, PENSTOCK_OP_OUTER_STEP, PENSTOCK_OP_BARRIER})
    c.opcodes |= 1u << op;
  for (std::uint32_t& redops : c.redops) redops = (1u << PENSTOCK_REDOP_COUNT) - 1;
  convert_in_f32(&c);
  c.weights = true;
  c.max_sources = PENSTOCK_MAX_SOURCES;
  c.max_destinations = PENSTOCK_MAX_DESTINATIONS;
  c.max_bytes = PENSTOCK_MAX_COUNT * 8;
  c.opcodes |= 1u << PENSTOCK_OP_SELECT | 1u << PENSTOCK_OP_UPDATE;
  c.max_rows = PENSTOCK_MAX_ROWS;
  c.select = kernels::select_capabilities(true);
  c.host_memory = true;
  c.synchronous = false;
  return c;
}

namespace {

EngineInfo probe() {
  EngineInfo info;
  info.name = "cuda";
  const Result<const Driver*> driver = load_driver(driver_path(""));
  if (!driver.ok()) {
    info.reason = driver.status().message();
    return info;
  }
  const Driver& d = *driver.value();
  int count = 0;
  if (d.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) {
    info.reason = "the CUDA driver finds no device";
    return info;
  }
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    char name[256] = {};
    if (d.cuDeviceGet(&device, i) != CUDA_SUCCESS ||
        d.cuDeviceGetName(name, sizeof name - 1, device) != CUDA_SUCCESS)
      continue;
    info.reason += fmt::format("{}{}: {}", i == 0 ? "" : ", ", i, name);
  }
  info.available = true;
  info.simulated = d.simulated;
  return info;
}

}  // namespace

EngineFactory cuda_engine_factory() {
  EngineFactory factory;
  factory.name = "cuda";
  factory.preference = 60;
  factory.probe = probe;
  factory.find_memory = find_cuda_memory;
  factory.present = [] { return !accelerator_nodes().empty(); };
  factory.make = [](const std::string& argument) -> Result<std::shared_ptr<Engine>> {
    const auto named = [](const Status& status) { return status.with_context("engine cuda"); };
    const Result<Options> options = Options::parse(argument);
    if (!options.ok()) return named(options.status());
    Result<std::shared_ptr<CudaDevice>> device = CudaDevice::open(options.value());
    if (!device.ok()) return named(device.status());
    Capabilities capabilities = device.value()->capabilities();
    return std::shared_ptr<Engine>(
        make_device_engine(std::move(capabilities), std::move(device).value()));
  };
  return factory;
}

}  // namespace penstock::cuda
