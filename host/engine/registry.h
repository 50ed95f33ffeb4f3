// What the choice of an engine needs of the registry. Internal to host/engine.
#ifndef PENSTOCK_ENGINE_REGISTRY_H_
#define PENSTOCK_ENGINE_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "penstock/engine/engine.h"

namespace penstock {

// All of them, those of plugins among them, by preference, highest first.
std::vector<EngineFactory> engine_factories();

// "NAME" or "NAME:ARGUMENT", neither a list nor auto.
Result<std::shared_ptr<Engine>> make_named_engine(const std::string& text);

}  // namespace penstock
#endif
