// Where engines that come as shared libraries are looked for. Internal to host/engine.
#ifndef PENSTOCK_ENGINE_PLUGINS_H_
#define PENSTOCK_ENGINE_PLUGINS_H_

#include <string>
#include <vector>

namespace penstock {

// Those that load_engine_plugins() loads, in that order.
std::vector<std::string> plugin_libraries();

}  // namespace penstock
#endif
