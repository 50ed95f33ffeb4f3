#include "engine_list.h"

#include <algorithm>
#include <string_view>

#include "absent_parts.h"

namespace penstock::tool {
namespace {

// What a part of the build brings.
struct Part {
  const char* part;  // of PENSTOCK_WITH_<part>; null: it needs nothing, and is always built
  const char* engine;
  const char* variant;  // null: the engine itself
};
constexpr Part kParts[] = {
    {"OPENCL", "opencl", nullptr},
    {"CUDA", "cuda", nullptr},
    {nullptr, "hls", nullptr},
    {"SYSTEMC", "card", "card:systemc"},
    {"VERILATOR", "card", "card:verilator"},
    {"XRT", "card", "card:xrt"},
};

const char* why_absent(const char* part) {
  if (part == nullptr) return nullptr;
  for (const AbsentPart& absent : kAbsentParts) {
    if (absent.part != nullptr && std::string_view(absent.part) == part) return absent.why;
  }
  return nullptr;
}

EngineState state_of(bool available) {
  return available ? EngineState::available : EngineState::not_here;
}

ListedVariant missing(const Part& part) {
  const char* why = why_absent(part.part);
  ListedVariant variant;
  variant.name = part.variant != nullptr ? part.variant : part.engine;
  variant.state = why != nullptr ? EngineState::not_built : EngineState::not_loaded;
  variant.reason = why != nullptr ? why : "no plugin that was loaded has it; see PENSTOCK_PLUGINS";
  return variant;
}

void add_missing(const Part& part, std::vector<ListedEngine>& engines) {
  auto engine = std::find_if(engines.begin(), engines.end(),
                             [&](const auto& one) { return one.info.name == part.engine; });
  const ListedVariant variant = missing(part);
  if (engine == engines.end()) {
    ListedEngine made;
    made.info.name = part.engine;
    made.info.reason = variant.reason;
    made.state = variant.state;
    engine = engines.insert(engines.end(), std::move(made));
  } else if (engine->state == EngineState::not_built && !engine->info.available) {
    engine->state = variant.state;  // a card is built if one of its buses is
    engine->info.reason = variant.reason;
  }
  if (part.variant == nullptr) return;
  const auto known =
      std::any_of(engine->variants.begin(), engine->variants.end(),
                  [&](const ListedVariant& one) { return one.name == variant.name; });
  if (!known) engine->variants.push_back(variant);
}

}  // namespace

const char* engine_state_name(EngineState state) {
  switch (state) {
    case EngineState::available:
      return "available";
    case EngineState::not_here:
      return "not here";
    case EngineState::not_loaded:
      return "not loaded";
    case EngineState::not_built:
      return "not built";
  }
  return "?";
}

std::vector<ListedEngine> listed_engines() {
  std::vector<ListedEngine> engines;
  for (EngineInfo& info : list_engines()) {
    ListedEngine one;
    one.state = state_of(info.available);
    for (const EngineVariant& variant : info.variants) {
      one.variants.push_back(
          {variant.name, state_of(variant.available), variant.reason, variant.simulated});
    }
    one.info = std::move(info);
    engines.push_back(std::move(one));
  }
  for (const Part& part : kParts) {
    const auto same = [&](const ListedEngine& one) { return one.info.name == part.engine; };
    const bool there = std::any_of(engines.begin(), engines.end(), same);
    if (part.variant != nullptr || !there) add_missing(part, engines);
  }
  return engines;
}

std::vector<ListedVariant> listed_ways() {
  std::vector<ListedVariant> ways;
  for (const ListedEngine& engine : listed_engines()) {
    if (engine.decorates()) continue;
    if (engine.variants.empty()) {
      ways.push_back({engine.info.name, engine.state, engine.info.reason, engine.info.simulated});
    }
    ways.insert(ways.end(), engine.variants.begin(), engine.variants.end());
  }
  return ways;
}

}  // namespace penstock::tool
