#include "penstock/engine/choice.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "penstock/base/env.h"
#include "penstock/base/log.h"
#include "penstock/engine/registry.h"

namespace penstock {
namespace {

constexpr std::uint32_t bit(std::uint32_t n) { return 1u << n; }

bool of_the_host(const EngineFactory& factory) {
  return factory.name == "simd" || factory.name == "scalar";
}

bool may_be_here(const EngineFactory& factory) {
  return factory.preference >= 0 && (factory.present == nullptr || factory.present());
}

KeptSpeed measured(const std::string& name) {
  KeptSpeed kept;
  kept.name = name;
  Result<std::shared_ptr<Engine>> engine = make_named_engine(name);
  if (!engine.ok()) {
    kept.failure = engine.status().message();
    return kept;
  }
  const Capabilities& can = (*engine)->capabilities();
  kept.opcodes = can.opcodes;
  kept.types = full_types(can);
  kept.host_memory = can.host_memory;
  Result<EngineSpeed> speed = measure_speed(**engine);
  if (speed.ok()) {
    kept.speed = *speed;
  } else {
    kept.failure = speed.status().message();
  }
  log::info("engine {}: COPY {:.3g} B/s, REDUCE {:.3g} B/s, {:.3g} decisions/s{}{}", name,
            kept.speed.copy, kept.speed.reduce, kept.speed.select, kept.failure.empty() ? "" : "; ",
            kept.failure);
  return kept;
}

// Every way that may be taken, by preference.
std::vector<KeptSpeed> measure_all() {
  std::vector<KeptSpeed> all;
  for (const EngineFactory& factory : engine_factories()) {
    if (!may_be_here(factory)) continue;
    const EngineInfo info = factory.probe();
    if (!info.available || info.simulated) continue;
    if (info.variants.empty()) all.push_back(measured(factory.name));
    for (const EngineVariant& variant : info.variants)
      if (variant.available && !variant.simulated) all.push_back(measured(variant.name));
  }
  return all;
}

// By preference, without any figures.
std::vector<KeptSpeed> unmeasured(const std::vector<EngineFactory>& factories, bool host_only) {
  std::vector<KeptSpeed> all;
  for (const EngineFactory& factory : factories) {
    if (!may_be_here(factory) || (host_only && !of_the_host(factory))) continue;
    const EngineInfo info = factory.probe();
    if (!info.available || info.simulated) continue;
    KeptSpeed one;
    one.name = factory.name;
    one.opcodes = info.capabilities.opcodes;
    one.types = full_types(info.capabilities);
    one.host_memory = info.capabilities.host_memory;
    all.push_back(std::move(one));
  }
  return all;
}

std::string lacking(const KeptSpeed& one, const EngineNeeds& needs) {
  if (!one.failure.empty()) return one.failure;
  const std::uint32_t opcodes = needs.opcodes & ~one.opcodes;
  for (std::uint32_t op = 0; op < PENSTOCK_OP_COUNT; ++op)
    if ((opcodes & bit(op)) != 0) return fmt::format("it has no {}", penstock_opcode_name(op));
  const std::uint32_t types = needs.types & ~one.types;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
    if ((types & bit(type)) != 0)
      return fmt::format("it does not reduce {} with every operation", penstock_type_name(type));
  if (needs.host_memory && !one.host_memory) return "it does not reach this process's memory";
  return "";
}

// What decides: how long a byte takes that is copied once and reduced once, or how long a decision.
double rating(const EngineSpeed& speed, const EngineNeeds& needs) {
  if ((needs.opcodes & bit(PENSTOCK_OP_SELECT)) != 0) return speed.select;
  return speed.copy > 0 && speed.reduce > 0 ? 1 / (1 / speed.copy + 1 / speed.reduce) : 0;
}

struct Known {
  std::vector<KeptSpeed> speeds;
  std::string reason;
};

// Once for a set of factories: tests and plugins add some.
Known known_engines() {
  static std::mutex mutex;
  static std::size_t counted = 0;
  static std::string path;
  static Known known;
  const std::vector<EngineFactory> factories = engine_factories();
  const std::lock_guard lock(mutex);
  const std::string now = env::text(env::Id::speed);
  if (counted == factories.size() && path == now) return known;
  const bool devices = std::any_of(factories.begin(), factories.end(), [](const auto& factory) {
    return may_be_here(factory) && !of_the_host(factory);
  });
  if (!devices) {
    known = {unmeasured(factories, true), "there is no device beside the host"};
  } else if (now == "none") {
    known = {unmeasured(factories, false), "PENSTOCK_SPEED is none, so that preference decides"};
  } else {
    known = {speeds_of_this_machine(measure_all),
             fmt::format("the fastest of those measured{}{}", speed_path().empty() ? "" : ", ",
                         speed_path())};
  }
  counted = factories.size();
  path = now;
  return known;
}

}  // namespace

EngineNeeds needs_of_collectives() {
  EngineNeeds needs;
  needs.opcodes = bit(PENSTOCK_OP_COPY) | bit(PENSTOCK_OP_REDUCE) | bit(PENSTOCK_OP_SIGNAL) |
                  bit(PENSTOCK_OP_WAIT);
  needs.types = bit(PENSTOCK_F32) | bit(PENSTOCK_F16) | bit(PENSTOCK_BF16);
  return needs;
}

EngineNeeds needs_of_decisions() {
  EngineNeeds needs;
  needs.opcodes = bit(PENSTOCK_OP_SELECT);
  return needs;
}

AutoChoice choose_automatically(const EngineNeeds& needs) {
  const Known known = known_engines();
  AutoChoice choice;
  choice.reason = known.reason;
  for (const KeptSpeed& one : known.speeds)
    choice.candidates.push_back({one.name, one.speed, lacking(one, needs)});
  std::stable_sort(choice.candidates.begin(), choice.candidates.end(),
                   [&](const AutoCandidate& a, const AutoCandidate& b) {
                     if (a.out.empty() != b.out.empty()) return a.out.empty();
                     return rating(a.speed, needs) > rating(b.speed, needs);
                   });
  return choice;
}

Result<EngineSource> EngineSource::parse(const std::string& text, const EngineNeeds& needs) {
  EngineSource source;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string one = text.substr(start, end - start);
    start = end + 1;
    if (one.empty())
      return error(Code::not_found,
                   "engine \"{}\": an empty name; write one, several with commas, or auto", text);
    if (one != "auto") {
      source.names_.push_back(one);
      continue;
    }
    for (const AutoCandidate& candidate : choose_automatically(needs).candidates)
      if (candidate.out.empty()) source.names_.push_back(candidate.name);
  }
  return source;
}

EngineSource EngineSource::from_here() const {
  EngineSource source = *this;
  if (tried_ > 0) --source.tried_;
  source.first_ = {};
  return source;
}

Result<std::shared_ptr<Engine>> EngineSource::next() {
  while (more()) {
    name_ = names_[tried_++];
    Result<std::shared_ptr<Engine>> engine = make_named_engine(name_);
    if (engine.ok()) {
      if (!first_.ok()) log::warn("engine {} instead: {}", name_, first_.message());
      return engine;
    }
    if (first_.ok()) first_ = engine.status();
  }
  if (first_.ok()) return error(Code::unsupported, "no engine is left to try");
  return first_;
}

Result<std::shared_ptr<Engine>> make_engine(const std::string& text, const EngineNeeds& needs) {
  PENSTOCK_ASSIGN(EngineSource source, EngineSource::parse(text, needs));
  return source.next();
}

}  // namespace penstock
