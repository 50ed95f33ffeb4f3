#include "penstock/sched/node_affinity.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>

namespace penstock {
namespace {

constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxDomain = 253;
// Up to this many preferred terms have a column each; more are added up in binary.
constexpr std::size_t kMaxPreferredColumns = 4;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxLabel) return false;
  if (!is_alphanumeric(text.front()) || !is_alphanumeric(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

// Parts of [a-z0-9-] joined by '.', each beginning and ending with a letter or digit (RFC 1123).
bool is_domain(std::string_view text) {
  if (text.empty() || text.size() > kMaxDomain) return false;
  char before = '.';
  for (const char c : text) {
    const bool inner = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (c == '.' || c == '-') {
      if (before == '.' || (c == '.' && before == '-')) return false;
    } else if (!inner) {
      return false;
    }
    before = c;
  }
  return before != '.' && before != '-';
}

bool contains(const std::vector<std::string>& values, const std::string& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool is_well_formed(const Requirement& requirement) {
  const auto& [key, operation, values] = requirement;
  if (!is_label_key(key)) return false;
  if (!std::all_of(values.begin(), values.end(), is_label_value)) return false;
  if (operation == "In" || operation == "NotIn") return !values.empty();
  if (operation == "Exists" || operation == "DoesNotExist") return values.empty();
  if (operation == "Gt" || operation == "Lt") {
    return values.size() == 1 && whole_number(values[0]).has_value();
  }
  return false;
}

bool label_matches(const Requirement& requirement, const NodeFacts& node) {
  const auto& [key, operation, values] = requirement;
  const auto label = node.labels.find(key);
  const bool has = label != node.labels.end();
  if (operation == "In") return has && contains(values, label->second);
  if (operation == "NotIn") return !has || !contains(values, label->second);
  if (operation == "Exists") return has;
  if (operation == "DoesNotExist") return !has;
  if (!has) return false;
  const auto is = whole_number(label->second), bound = whole_number(values[0]);
  if (!is || !bound) return false;
  return operation == "Gt" ? *is > *bound : *is < *bound;
}

// The only field there is, with one value.
bool field_is_well_formed(const Requirement& requirement) {
  return requirement.key == "metadata.name" && requirement.values.size() == 1 &&
         (requirement.operation == "In" || requirement.operation == "NotIn");
}

bool field_matches(const Requirement& requirement, const NodeFacts& node) {
  return (requirement.values[0] == node.name) == (requirement.operation == "In");
}

// Requirements mean the same in any order; lengths keep two from looking alike.
std::string key_of(const std::vector<Requirement>& requirements) {
  std::vector<std::string> parts;
  for (const Requirement& requirement : requirements) {
    std::vector<std::string> values = requirement.values;
    std::sort(values.begin(), values.end());
    std::string part =
        fmt::format("{}:{} {}", requirement.key.size(), requirement.key, requirement.operation);
    for (const std::string& value : values) part += fmt::format(" {}:{}", value.size(), value);
    parts.push_back(std::move(part));
  }
  std::sort(parts.begin(), parts.end());
  return fmt::format("[{}]", fmt::join(parts, " and "));
}

std::string key_of(const SelectorTerm& term) {
  return key_of(term.labels) + (term.fields.empty() ? "" : " fields " + key_of(term.fields));
}

Status add_preferred_terms(NodeTable* table, const std::vector<PreferredTerm>& terms, Task* task) {
  if (terms.size() <= kMaxPreferredColumns) {
    for (const PreferredTerm& preferred : terms) {
      PENSTOCK_ASSIGN(const std::uint16_t column,
                      table->intern("selector " + key_of(preferred.term),
                                    [term = preferred.term](const NodeFacts& node) {
                                      return matches(term, node);
                                    }));
      PENSTOCK_TRY(add_term(task, TermGroup::preferred_affinity, column, false, preferred.weight));
    }
    return {};
  }
  // The sums that nodes have now: a column for each of them, or for each binary digit that occurs,
  // whichever are fewer. A task is made again when nodes change.
  std::string key = "preferred";
  for (const PreferredTerm& preferred : terms) {
    key += fmt::format(" {}*{}", preferred.weight, key_of(preferred.term));
  }
  std::set<std::int64_t> sums;
  std::int64_t digits = 0;
  for (std::uint32_t row = 0; row < table->rows(); ++row) {
    if (!table->holds_node(row)) continue;
    const std::int64_t sum = preferred_weight(terms, table->catalogue().node(row));
    digits |= sum;
    if (sum != 0) sums.insert(sum);
  }
  if (sums.size() < static_cast<std::size_t>(std::popcount(static_cast<std::uint64_t>(digits)))) {
    for (const std::int64_t sum : sums) {
      PENSTOCK_ASSIGN(
          const std::uint16_t column,
          table->intern(fmt::format("sum {} of {}", sum, key), [terms, sum](const NodeFacts& node) {
            return preferred_weight(terms, node) == sum;
          }));
      PENSTOCK_TRY(add_term(task, TermGroup::preferred_affinity, column, false,
                            static_cast<std::int32_t>(sum)));
    }
    return {};
  }
  for (; digits != 0; digits &= digits - 1) {
    const int digit = std::countr_zero(static_cast<std::uint64_t>(digits));
    PENSTOCK_ASSIGN(const std::uint16_t column,
                    table->intern(fmt::format("digit {} of {}", digit, key),
                                  [terms, digit](const NodeFacts& node) {
                                    return (preferred_weight(terms, node) >> digit & 1) != 0;
                                  }));
    PENSTOCK_TRY(add_term(task, TermGroup::preferred_affinity, column, false, 1 << digit));
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> whole_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_label_value(std::string_view text) { return text.empty() || is_name(text); }

bool is_label_key(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_name(text);
  return is_domain(text.substr(0, slash)) && is_name(text.substr(slash + 1));
}

bool matches(const SelectorTerm& term, const NodeFacts& node) {
  if (term.labels.empty() && term.fields.empty()) return false;
  return std::all_of(term.labels.begin(), term.labels.end(), is_well_formed) &&
         std::all_of(term.fields.begin(), term.fields.end(), field_is_well_formed) &&
         std::all_of(term.labels.begin(), term.labels.end(),
                     [&](const Requirement& r) { return label_matches(r, node); }) &&
         std::all_of(term.fields.begin(), term.fields.end(),
                     [&](const Requirement& r) { return field_matches(r, node); });
}

bool matches_required(const KubernetesPod& pod, const NodeFacts& node) {
  for (const auto& [name, value] : pod.node_selector) {
    const auto label = node.labels.find(name);
    if (label == node.labels.end() || label->second != value) return false;
  }
  if (!pod.has_required) return true;
  return std::any_of(pod.required.begin(), pod.required.end(),
                     [&](const SelectorTerm& term) { return matches(term, node); });
}

std::int64_t preferred_weight(const std::vector<PreferredTerm>& terms, const NodeFacts& node) {
  std::int64_t sum = 0;
  for (const PreferredTerm& preferred : terms) {
    if (matches(preferred.term, node)) sum += preferred.weight;
  }
  return sum;
}

std::string required_key(const KubernetesPod& pod) {
  std::vector<std::string> terms;
  for (const SelectorTerm& term : pod.required) terms.push_back(key_of(term));
  std::sort(terms.begin(), terms.end());
  std::string key = "selector";
  for (const auto& [name, value] : pod.node_selector) {
    key += fmt::format(" {}:{}={}:{}", name.size(), name, value.size(), value);
  }
  if (pod.has_required) key += fmt::format(" affinity {}", fmt::join(terms, " or "));
  return key;
}

Status add_affinity_terms(NodeTable* table, const KubernetesPod& pod, Task* task,
                          const AddedAffinity& added) {
  if (added.has_required) {
    KubernetesPod asked;
    asked.has_required = true;
    asked.required = added.required;
    PENSTOCK_ASSIGN(const std::uint16_t column,
                    table->intern(required_key(asked), [asked](const NodeFacts& node) {
                      return matches_required(asked, node);
                    }));
    PENSTOCK_TRY(add_term(task, TermGroup::node_affinity, column, false));
  }
  if (!pod.node_selector.empty() || pod.has_required) {
    // Of the pod, the predicate needs no more than this.
    KubernetesPod asked;
    asked.node_selector = pod.node_selector;
    asked.has_required = pod.has_required;
    asked.required = pod.required;
    PENSTOCK_ASSIGN(const std::uint16_t column,
                    table->intern(required_key(pod), [asked](const NodeFacts& node) {
                      return matches_required(asked, node);
                    }));
    PENSTOCK_TRY(add_term(task, TermGroup::node_affinity, column, false));
  }
  std::vector<PreferredTerm> preferred = pod.preferred;
  preferred.insert(preferred.end(), added.preferred.begin(), added.preferred.end());
  return add_preferred_terms(table, preferred, task);
}

}  // namespace penstock
