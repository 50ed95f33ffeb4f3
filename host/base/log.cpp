#include "penstock/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "penstock/base/env.h"

namespace penstock::log {
namespace {

constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::trace, spdlog::level::debug,
                                                 spdlog::level::info,  spdlog::level::warn,
                                                 spdlog::level::err,   spdlog::level::off};

Level level_of(const std::string& name, bool* known) {
  static constexpr const char* kNames[] = {"trace", "debug", "info", "warn", "error", "off"};
  for (int i = 0; i < 6; ++i) {
    if (name == kNames[i]) return static_cast<Level>(i);
  }
  *known = false;
  return Level::warn;
}

// Never destroyed, so that a static destructor may still log.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    const std::string name = env::text(env::Id::log);
    bool known = true;
    const Level level = level_of(name, &known);
    auto* made = new spdlog::logger("penstock", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e penstock[%P] %l: %v");
    made->set_level(kLevels[static_cast<int>(level)]);
    if (!known) {
      made->warn("PENSTOCK_LOG={} is no level: it must be trace, debug, info, warn, error or off",
                 name);
    }
    return made;
  }();
  return *instance;
}

}  // namespace

bool enabled(Level level) {
  return level != Level::off && logger().should_log(kLevels[static_cast<int>(level)]);
}

void write(Level level, const std::string& message) {
  logger().log(kLevels[static_cast<int>(level)], message);
}

}  // namespace penstock::log
