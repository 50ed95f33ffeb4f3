#include "penstock/sched/taints.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "penstock/sched/node_affinity.h"

namespace penstock {
namespace {

bool is_tolerated(const Taint& taint, const std::vector<Toleration>& tolerations) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const Toleration& toleration) { return tolerates(toleration, taint); });
}

// The taint's value is more (Gt) or less (Lt) than the toleration's; both are whole numbers.
bool compares_well(const Toleration& toleration, const Taint& taint) {
  const auto is = whole_number(taint.value), bound = whole_number(toleration.value);
  if (!is || !bound) return false;
  return toleration.operation == "Gt" ? *is > *bound : *is < *bound;
}

}  // namespace

bool tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.operation == "Exists") return true;
  if (toleration.operation == "Gt" || toleration.operation == "Lt") {
    return toleration.compares && compares_well(toleration, taint);
  }
  return toleration.operation == "Equal" && toleration.value == taint.value;
}

const Taint* find_untolerated(const std::vector<Taint>& taints,
                              const std::vector<Toleration>& tolerations) {
  for (const Taint& taint : taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (!is_tolerated(taint, tolerations)) return &taint;
  }
  return nullptr;
}

std::uint32_t count_untolerated_preferred(const std::vector<Taint>& taints,
                                          const std::vector<Toleration>& tolerations) {
  std::uint32_t count = 0;
  for (const Taint& taint : taints) {
    if (taint.effect == "PreferNoSchedule" && !is_tolerated(taint, tolerations)) ++count;
  }
  return count;
}

bool tolerates_unschedulable(const std::vector<Toleration>& tolerations) {
  return is_tolerated({"node.kubernetes.io/unschedulable", "", "NoSchedule"}, tolerations);
}

// Sorted, each once; lengths keep two sets from looking alike.
std::string tolerations_key(const std::vector<Toleration>& tolerations) {
  std::vector<std::string> parts;
  for (const Toleration& t : tolerations) {
    parts.push_back(fmt::format("{}:{}={}:{} {} {}{}", t.key.size(), t.key, t.value.size(), t.value,
                                t.operation, t.effect, t.compares ? " compares" : ""));
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return fmt::format("{}", fmt::join(parts, "; "));
}

Status add_taint_terms(NodeTable* table, const std::vector<Toleration>& tolerations, Task* task) {
  if (!tolerates_unschedulable(tolerations)) {
    PENSTOCK_TRY(add_term(task, TermGroup::unschedulable, PENSTOCK_BIT_UNSCHEDULABLE, true));
  }
  const std::string key = tolerations_key(tolerations);
  PENSTOCK_ASSIGN(const std::uint16_t refused,
                  table->intern("not tolerated by " + key, [tolerations](const NodeFacts& node) {
                    return find_untolerated(node.taints, tolerations) != nullptr;
                  }));
  PENSTOCK_TRY(add_term(task, TermGroup::taints, refused, true));

  // The number of PreferNoSchedule taints in binary: a column for each digit, weighed as the digit.
  std::uint32_t most = 0;
  for (std::uint32_t row = 0; row < table->rows(); ++row) {
    most = std::max(most,
                    count_untolerated_preferred(table->catalogue().node(row).taints, tolerations));
  }
  for (int digit = 0; digit < static_cast<int>(std::bit_width(most)); ++digit) {
    PENSTOCK_ASSIGN(
        const std::uint16_t column,
        table->intern(fmt::format("digit {} of preferred taints not tolerated by {}", digit, key),
                      [tolerations, digit](const NodeFacts& node) {
                        const std::uint32_t count =
                            count_untolerated_preferred(node.taints, tolerations);
                        return (count >> digit & 1) != 0;
                      }));
    PENSTOCK_TRY(add_term(task, TermGroup::preferred_taints, column, false, 1 << digit));
  }
  return {};
}

std::string taint_text(const Taint& taint) {
  return fmt::format("{}{}{}:{}", taint.key, taint.value.empty() ? "" : "=", taint.value,
                     taint.effect);
}

}  // namespace penstock
