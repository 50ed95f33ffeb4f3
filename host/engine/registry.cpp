#include <algorithm>
#include <mutex>

#include "penstock/engine/accept.h"
#include "penstock/engine/choice.h"
#include "penstock/engine/device_memory.h"
#include "penstock/engine/engine.h"
#include "penstock/engine/fault.h"
#include "penstock/engine/host_engine.h"
#include "penstock/engine/registry.h"

namespace penstock {
namespace {

EngineFactory host_factory(std::string name, int preference, std::string what,
                           std::unique_ptr<const Kernels> (*kernels)()) {
  Capabilities c;
  c.name = name;
  c.description = std::move(what);
  c.opcodes = (1u << PENSTOCK_OP_COUNT) - 1;
  for (std::uint32_t& redops : c.redops) redops = (1u << PENSTOCK_REDOP_COUNT) - 1;
  convert_in_f32(&c);
  c.weights = true;
  c.max_sources = PENSTOCK_MAX_SOURCES;
  c.max_destinations = PENSTOCK_MAX_DESTINATIONS;
  c.max_bytes = PENSTOCK_MAX_COUNT * 8;
  c.max_rows = PENSTOCK_MAX_ROWS;
  for (std::uint32_t op = 0; op < 64; ++op)
    if (penstock_column_opcode_name(op)[0] != '?') c.select.operations |= std::uint64_t{1} << op;
  c.select.normalisations = (2u << PENSTOCK_NORMALISE_SPREAD) - 1;
  c.select.ties = (2u << PENSTOCK_TIE_HASH) - 1;
  c.select.max_best = PENSTOCK_MAX_BEST;
  c.select.gpus = c.select.domains = true;
  c.select.max_resources = PENSTOCK_MAX_RESOURCES;
  c.select.max_bits = PENSTOCK_MAX_BIT_COLUMNS;
  c.select.max_free = PENSTOCK_MAX_FREE_COLUMNS;
  c.host_memory = true;
  c.synchronous = true;
  EngineFactory factory;
  factory.name = std::move(name);
  factory.preference = preference;
  factory.probe = [c] { return EngineInfo{c.name, true, c.description, c}; };
  factory.make = [c, kernels](const std::string& argument) -> Result<std::shared_ptr<Engine>> {
    if (!argument.empty())
      return error(Code::invalid_argument, "engine {}: takes no argument, but got \"{}\"", c.name,
                   argument);
    return std::shared_ptr<Engine>(make_host_engine(c, kernels()));
  };
  return factory;
}

EngineFactory fault_factory() {
  EngineFactory factory;
  factory.name = "fault";
  factory.preference = -1;
  factory.probe = [] {
    return EngineInfo{
        "fault", true, "another engine with injected faults: fault:ENGINE;fail=N:...", {}};
  };
  factory.make = [](const std::string& argument) { return make_fault_engine(argument); };
  return factory;
}

// Sorted by preference, highest first. The lock is not held while a factory runs: the fault
// engine's asks the registry for the engine that it decorates.
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  Status add(EngineFactory factory) {
    const auto legal = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-';
    };
    if (factory.name.empty() || !std::all_of(factory.name.begin(), factory.name.end(), legal) ||
        factory.name == "auto" || !factory.probe || !factory.make)
      return error(Code::invalid_argument,
                   "register engine \"{}\": a factory has a name of letters, digits, '_' and '-' "
                   "other than auto, a probe and a make function",
                   factory.name);
    const std::lock_guard lock(mutex_);
    for (const EngineFactory& other : factories_)
      if (other.name == factory.name)
        return error(Code::already_exists, "register engine \"{}\": the name is taken",
                     factory.name);
    const auto place = std::find_if(
        factories_.begin(), factories_.end(),
        [&](const EngineFactory& other) { return other.preference < factory.preference; });
    if (factory.find_memory) register_device_memory(factory.find_memory);
    factories_.insert(place, std::move(factory));
    return {};
  }

  std::vector<EngineFactory> factories() {
    const std::lock_guard lock(mutex_);
    return factories_;
  }

 private:
  Registry() {
    factories_.push_back(
        host_factory("simd", 100, fmt::format("vector instructions of the host, {}", simd_target()),
                     simd_kernels));
    factories_.push_back(
        host_factory("scalar", 50, "plain C++, the definition of every result", scalar_kernels));
    factories_.push_back(fault_factory());
  }

  std::mutex mutex_;
  std::vector<EngineFactory> factories_;
};

std::string known_names(const std::vector<EngineFactory>& factories) {
  std::string names;
  for (const EngineFactory& factory : factories) names += factory.name + ", ";
  return names + "auto";
}

}  // namespace

std::vector<EngineFactory> engine_factories() {
  load_engine_plugins();
  return Registry::instance().factories();
}

Result<std::shared_ptr<Engine>> make_named_engine(const std::string& text) {
  const std::vector<EngineFactory> factories = engine_factories();
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const std::string argument = colon == std::string::npos ? "" : text.substr(colon + 1);
  for (const EngineFactory& factory : factories) {
    if (factory.name != name) continue;
    if (const EngineInfo info = factory.probe(); !info.available)
      return error(Code::unsupported, "engine {}: not available here: {}", name, info.reason);
    return factory.make(argument);
  }
  return error(Code::not_found, "engine \"{}\": there is none of that name; there are {}", name,
               known_names(factories));
}

Status register_engine(EngineFactory factory) {
  return Registry::instance().add(std::move(factory));
}

std::vector<EngineInfo> list_engines() {
  std::vector<EngineInfo> infos;
  for (const EngineFactory& factory : engine_factories()) infos.push_back(factory.probe());
  return infos;
}

Result<std::shared_ptr<Engine>> make_engine(const std::string& name) {
  return make_engine(name, EngineNeeds());
}

}  // namespace penstock
