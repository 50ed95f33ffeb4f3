// Logging to standard error through spdlog; the level comes from PENSTOCK_LOG (error, warn, info,
// debug, trace, off; default warn). Thread-safe.
#ifndef PENSTOCK_BASE_LOG_H_
#define PENSTOCK_BASE_LOG_H_

#include <fmt/core.h>

#include <string>
#include <utility>

namespace penstock::log {

enum class Level { trace, debug, info, warn, error, off };

bool enabled(Level level);
void write(Level level, const std::string& message);

template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::warn)) write(Level::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace penstock::log
#endif
