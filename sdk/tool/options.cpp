#include "options.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "penstock/base/env.h"

namespace penstock::tool {
namespace {

[[noreturn]] void reject(const std::string& option, const std::string& why) {
  throw CLI::ValidationError(option, why);
}

std::string last_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

}  // namespace

std::uint64_t parse_number(const std::string& option, const std::string& text, std::uint64_t min,
                           std::uint64_t max) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure == std::errc::invalid_argument || stop != end) {
    reject(option, fmt::format("'{}' is not a whole number; use {}..{}", text, min, max));
  }
  if (failure != std::errc() || value < min || value > max) {
    reject(option, fmt::format("{} is out of range; use {}..{}", text, min, max));
  }
  return value;
}

std::uint64_t parse_size(const std::string& option, const std::string& text, std::uint64_t min,
                         std::uint64_t max) {
  const Result<std::uint64_t> value = env::parse_bytes(text);
  if (!value.ok()) reject(option, value.status().message());
  if (value.value() < min || value.value() > max) {
    reject(option, fmt::format("{} is out of range; use {}..{} bytes", text, min, max));
  }
  return value.value();
}

double parse_real(const std::string& option, const std::string& text, double min, double max) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || !std::isfinite(value) || value < min ||
      value > max) {
    reject(option, fmt::format("'{}' is not a number in {}..{}", text, min, max));
  }
  return value;
}

CLI::Option* add_size(CLI::App& app, const std::string& names, std::uint64_t& value,
                      std::uint64_t min, std::uint64_t max, const std::string& help,
                      const std::string& default_text) {
  const std::string shown = last_name(names);
  CLI::Option* option = app.add_option_function<std::string>(
      names,
      [&value, shown, min, max](const std::string& text) {
        value = parse_size(shown, text, min, max);
      },
      help);
  option->type_name("BYTES");
  if (!default_text.empty()) option->default_str(default_text);
  return option;
}

CLI::Option* add_real(CLI::App& app, const std::string& names, double& value, double min,
                      double max, const std::string& help) {
  const std::string shown = last_name(names);
  return app
      .add_option_function<std::string>(
          names,
          [&value, shown, min, max](const std::string& text) {
            value = parse_real(shown, text, min, max);
          },
          help)
      ->type_name("X")
      ->default_str(fmt::format("{}", value));
}

CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help) {
  const std::string shown = last_name(names);
  CLI::Option* option = app.add_option_function<std::string>(
      names,
      [&value, shown, choices](const std::string& text) {
        for (const std::string& choice : choices) {
          if (choice == text) {
            value = text;
            return;
          }
        }
        reject(shown, fmt::format("there is no '{}'; use {}", text, join_names(choices)));
      },
      help);
  option->type_name("NAME");
  if (!value.empty()) option->default_str(value);
  return option;
}

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace penstock::tool
