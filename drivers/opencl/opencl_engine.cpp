#include "penstock/drivers/opencl/opencl_engine.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/drivers/opencl/error.h"
#include "penstock/drivers/opencl/program.h"
#include "penstock/engine/speed.h"

namespace penstock::opencl {
namespace {

class OpenclDevice final : public Device {
 public:
  explicit OpenclDevice(std::shared_ptr<const Core> core) : core_(std::move(core)) {}
  Result<std::unique_ptr<DeviceStream>> open(Queue& queue) override {
    PENSTOCK_ASSIGN(std::unique_ptr<Stream> stream, Stream::open(core_, queue.pool()));
    return std::unique_ptr<DeviceStream>(std::move(stream));
  }

 private:
  const std::shared_ptr<const Core> core_;
};

Sharing claimed(const DeviceTraits& traits, const Options& options) {
  if (options.staged) return Sharing::none;
  if (traits.system_svm) return Sharing::system;
  return traits.shares_memory ? Sharing::objects : Sharing::none;
}

// Whether kernels see what the host stores, and the host what they store, with nothing in between
// but the end of a command. The runtime has no way to ask.
bool shares(const std::shared_ptr<const Core>& core) {
  constexpr std::size_t kPage = 4096;
  auto free_pages = [](std::byte* pages) { std::free(pages); };
  const std::unique_ptr<std::byte, decltype(free_pages)> pages(
      static_cast<std::byte*>(std::aligned_alloc(kPage, 2 * kPage)), free_pages);
  if (pages == nullptr) return false;
  std::byte* const src = pages.get();
  std::byte* const dst = src + kPage;
  std::memset(src, 0, 2 * kPage);
  Result<std::unique_ptr<Stream>> stream = Stream::open(core, nullptr);
  if (!stream.ok()) return false;
  for (const int value : {0x5a, 0xc3, 0x17}) {
    std::memset(src, value, kPage);
    void* const to = dst;
    if (!stream.value()->copy(&to, 1, src, kPage).ok()) return false;
    stream.value()->drain();
    if (std::memcmp(src, dst, kPage) != 0) return false;
  }
  return true;
}

// Each device by its number, if there are several; the one that is taken without a name first.
std::vector<EngineVariant> variants() {
  std::vector<EngineVariant> all;
  const Result<std::vector<FoundDevice>> devices = list_devices();
  const Result<FoundDevice> best = choose_device("");
  if (!devices.ok() || !best.ok() || devices.value().size() < 2) return all;
  for (std::size_t i = 0; i < devices.value().size(); ++i) {
    const FoundDevice& found = devices.value()[i];
    const std::string& why = found.traits.unusable;
    const EngineVariant variant{
        fmt::format("opencl:{}", i), why.empty(),
        why.empty() ? capabilities_of(found.traits).description : found.traits.name + ": " + why,
        false};
    const bool is_best = found.device() == best.value().device();
    all.insert(is_best ? all.begin() : all.end(), variant);
  }
  return all;
}

const char* sharing_text(Sharing sharing) {
  switch (sharing) {
    case Sharing::objects:
      return "memory used in place";
    case Sharing::system:
      return "memory used in place by system SVM";
    case Sharing::none:
      break;
  }
  return "memory staged";
}

}  // namespace

Result<std::shared_ptr<const Core>> open_core(const Options& options) {
  auto core = std::make_shared<Core>();
  PENSTOCK_ASSIGN(core->found, choose_device(options.device));
  core->options = options;
  const DeviceTraits& traits = core->found.traits;
  PENSTOCK_TRY(guarded(traits.name, [&]() -> Status {
    core->context = cl::Context(core->found.device);
    return {};
  }));
  const BinaryCache cache(options.cache.empty()     ? BinaryCache::users_folder()
                          : options.cache == "none" ? ""
                                                    : options.cache);
  PENSTOCK_ASSIGN(const Program folds,
                  build_program(core->context, core->found, fold_source(), cache));
  core->folds = folds.program;
  core->tables = std::make_unique<const TableProgram>(core->context, core->found, cache);
  core->sharing = claimed(traits, options);
  if (core->sharing == Sharing::objects)
    core->pool_objects = std::make_unique<PoolObjects>(core->context, traits);
  if (core->sharing != Sharing::none && !shares(core)) {
    log::info("opencl: {} says that it shares this process's memory, and does not; it is staged",
              traits.name);
    core->sharing = Sharing::none;
  }
  return std::shared_ptr<const Core>(std::move(core));
}

std::shared_ptr<Engine> make_opencl_engine(std::shared_ptr<const Core> core) {
  Capabilities capabilities = capabilities_of(core->found.traits);
  capabilities.description += fmt::format("; {}", sharing_text(core->sharing));
  return make_device_engine(std::move(capabilities),
                            std::make_shared<OpenclDevice>(std::move(core)));
}

EngineFactory opencl_engine_factory() {
  EngineFactory factory;
  factory.name = "opencl";
  factory.preference = 60;
  factory.present = [] { return !accelerator_nodes().empty(); };
  factory.probe = [] {
    EngineInfo info;
    info.name = "opencl";
    const Result<FoundDevice> found = choose_device("");
    info.available = found.ok();
    if (!found.ok()) {
      info.reason = found.status().message();
      return info;
    }
    info.capabilities = capabilities_of(found.value().traits);
    info.reason = info.capabilities.description;
    info.variants = variants();
    return info;
  };
  factory.make = [](const std::string& argument) -> Result<std::shared_ptr<Engine>> {
    const auto named = [](const Status& status) { return status.with_context("engine opencl"); };
    const Result<Options> options = Options::parse(argument);
    if (!options.ok()) return named(options.status());
    Result<std::shared_ptr<const Core>> core = open_core(options.value());
    if (!core.ok()) return named(core.status());
    return make_opencl_engine(std::move(core).value());
  };
  return factory;
}

}  // namespace penstock::opencl
