// YAML as the values that JSON has, for configuration files. JSON is YAML too.
//
// Plain scalars are read as Kubernetes' tools do (YAML 1.1): null and ~; true, yes, on and their
// opposites; whole numbers in base 10, 16 (0x), 8 (0o or a leading 0) and 2 (0b), with '_' between
// digits; decimal fractions. Everything else, and what stands in quotes, is text. A fraction
// without a fractional part becomes a whole number.
#ifndef PENSTOCK_SCHED_YAML_DOCUMENT_H_
#define PENSTOCK_SCHED_YAML_DOCUMENT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "penstock/base/status.h"

namespace penstock {

struct YamlLimits {
  int depth = 64;                            // nested lists and maps
  std::size_t bytes = std::size_t{1} << 20;  // of the text
  // Of the values, every alias counted as what it stands for: the bytes of the texts and 16 for
  // each value.
  std::size_t expanded = std::size_t{16} << 20;
};

// The one document of the text. Errors name line and column: invalid_argument for what is no YAML,
// for a key that stands twice in a map or is no text, an alias within what it stands for, a second
// document, a number that JSON does not have (.inf, .nan); unsupported for tags and merge keys;
// out_of_range beyond the limits. Nothing throws; time and memory are bounded by the limits.
Result<nlohmann::json> parse_yaml(std::string_view bytes, const std::string& name,
                                  const YamlLimits& limits = {});

}  // namespace penstock
#endif
