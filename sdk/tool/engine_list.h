// The engines that there could be: those that are registered, each of their variants, and those
// that this build or this environment leaves out, with the reason.
#ifndef PENSTOCK_SDK_TOOL_ENGINE_LIST_H_
#define PENSTOCK_SDK_TOOL_ENGINE_LIST_H_

#include <string>
#include <vector>

#include "penstock/engine/engine.h"

namespace penstock::tool {

enum class EngineState {
  available,
  not_here,    // built and loaded, but this machine lacks something
  not_loaded,  // built, but its plugin was not found
  not_built,
};
const char* engine_state_name(EngineState state);  // "not here"

struct ListedVariant {
  std::string name;  // "card:verilator"
  EngineState state = EngineState::available;
  std::string reason;
  bool simulated = false;
};

struct ListedEngine {
  EngineInfo info;
  EngineState state = EngineState::available;
  std::vector<ListedVariant> variants;  // those that are not built among them
  // Wraps another engine, so that its name alone makes nothing.
  bool decorates() const { return info.available && info.name == "fault"; }
};

// Registered ones as the registry has them, then the others by name.
std::vector<ListedEngine> listed_engines();

// What has to be named to reach each engine in each way: "simd", "card:verilator". Without those
// that wrap another.
std::vector<ListedVariant> listed_ways();

}  // namespace penstock::tool
#endif
