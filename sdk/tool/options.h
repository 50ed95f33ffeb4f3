// Options whose values are parsed strictly: no sign, no fraction, no overflow, within a range.
#ifndef PENSTOCK_SDK_TOOL_OPTIONS_H_
#define PENSTOCK_SDK_TOOL_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::tool {

// Throws CLI::ValidationError that says what the text is not and what would be right.
std::uint64_t parse_number(const std::string& option, const std::string& text, std::uint64_t min,
                           std::uint64_t max);
std::uint64_t parse_size(const std::string& option, const std::string& text, std::uint64_t min,
                         std::uint64_t max);
double parse_real(const std::string& option, const std::string& text, double min, double max);

// A whole number min..max. The value's present content is the default that the help shows.
template <typename T>
CLI::Option* add_number(CLI::App& app, const std::string& names, T& value, std::uint64_t min,
                        std::uint64_t max, const std::string& help) {
  const std::string shown = names.substr(names.rfind(',') + 1);
  return app
      .add_option_function<std::string>(
          names,
          [&value, shown, min, max](const std::string& text) {
            value = static_cast<T>(parse_number(shown, text, min, max));
          },
          help)
      ->type_name("N")
      ->default_str(std::to_string(value));
}

// Bytes with the suffixes K, M, G. default_text "" shows none.
CLI::Option* add_size(CLI::App& app, const std::string& names, std::uint64_t& value,
                      std::uint64_t min, std::uint64_t max, const std::string& help,
                      const std::string& default_text);

CLI::Option* add_real(CLI::App& app, const std::string& names, double& value, double min,
                      double max, const std::string& help);

// One of `choices`.
CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help);

// "a, b or c".
std::string join_names(const std::vector<std::string>& names);

}  // namespace penstock::tool
#endif
