#include "penstock/sched/label_selector.h"

#include <fmt/format.h>

#include <algorithm>

namespace penstock {
namespace {

bool holds(const Requirement& requirement, const Labels& labels) {
  const auto label = labels.find(requirement.key);
  const bool has = label != labels.end();
  if (requirement.operation == "Exists") return has;
  if (requirement.operation == "DoesNotExist") return !has;
  const auto& values = requirement.values;
  const bool listed = has && std::find(values.begin(), values.end(), label->second) != values.end();
  if (requirement.operation == "In") return listed;
  return requirement.operation == "NotIn" && !listed;
}

}  // namespace

bool matches(const LabelSelector& selector, const Labels& labels) {
  if (!selector.present) return false;
  for (const auto& [key, value] : selector.labels) {
    const auto label = labels.find(key);
    if (label == labels.end() || label->second != value) return false;
  }
  return std::all_of(selector.expressions.begin(), selector.expressions.end(),
                     [&](const Requirement& requirement) { return holds(requirement, labels); });
}

bool matches_everything(const LabelSelector& selector) {
  return selector.present && selector.labels.empty() && selector.expressions.empty();
}

LabelSelector with_label_keys(LabelSelector selector, const std::vector<std::string>& match,
                              const std::vector<std::string>& mismatch, const Labels& labels) {
  const auto add = [&](const std::vector<std::string>& keys, const char* operation) {
    for (const std::string& key : keys) {
      const auto label = labels.find(key);
      if (label == labels.end()) continue;
      selector.expressions.push_back({key, operation, {label->second}});
    }
  };
  if (!selector.present) return selector;
  add(match, "In");
  add(mismatch, "NotIn");
  return selector;
}

std::string key_part(std::string_view text) { return fmt::format("{}:{}", text.size(), text); }

std::string key_of(const LabelSelector& selector) {
  if (!selector.present) return "nothing";
  std::vector<std::string> parts;
  // A label with a value is an In with one.
  for (const auto& [key, value] : selector.labels) {
    parts.push_back(fmt::format("{} In {}", key_part(key), key_part(value)));
  }
  for (const Requirement& requirement : selector.expressions) {
    std::vector<std::string> values = requirement.values;
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::string part = fmt::format("{} {}", key_part(requirement.key), requirement.operation);
    for (const std::string& value : values) part += " " + key_part(value);
    parts.push_back(std::move(part));
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return fmt::format("[{}]", fmt::join(parts, " & "));
}

}  // namespace penstock
