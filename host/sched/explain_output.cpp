#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "penstock/sched/explain.h"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const NodeExplanation& node) {
  Json filters = Json::array(), scores = Json::array();
  for (const FilterVerdict& verdict : node.filters) {
    Json& out = filters.emplace_back(Json{{"filter", verdict.filter}, {"passed", verdict.passed}});
    if (!verdict.passed) out["reason"] = verdict.reason;
    if (!verdict.numbers.empty()) out["numbers"] = verdict.numbers;
  }
  for (const ScoreLine& line : node.scores) {
    scores.push_back({{"score", line.score},
                      {"raw", line.raw},
                      {"normalised", line.normalised},
                      {"weight", line.weight},
                      {"weighted", line.weighted}});
  }
  Json out = {{"row", node.row},
              {"node", node.name},
              {"feasible", node.feasible},
              {"filters", std::move(filters)}};
  if (node.feasible) {
    out["scores"] = std::move(scores);
    out["total"] = node.total;
    out["best"] = node.best;
  }
  return out;
}

void append_refused(const Explanation& explanation, std::size_t width, std::string* out) {
  for (const NodeExplanation& node : explanation.nodes) {
    if (node.feasible) continue;
    for (const FilterVerdict& verdict : node.filters) {
      if (verdict.passed) continue;
      fmt::format_to(std::back_inserter(*out), "  {:<{}}  {:<14} {}\n", node.name, width,
                     verdict.filter, verdict.reason);
    }
  }
}

}  // namespace

std::string explanation_text(const Explanation& explanation) {
  std::string out = explanation.summary + "\n";
  auto append = std::back_inserter(out);
  fmt::format_to(append, "policy {}, engine {}\n", explanation.policy, explanation.engine);
  for (const std::string& warning : explanation.warnings) out += "warning: " + warning + "\n";
  std::size_t width = 4;
  for (const NodeExplanation& node : explanation.nodes) width = std::max(width, node.name.size());

  std::vector<const NodeExplanation*> fitting;
  for (const NodeExplanation& node : explanation.nodes) {
    if (node.feasible) fitting.push_back(&node);
  }
  // The winner first, then by score.
  std::stable_sort(fitting.begin(), fitting.end(),
                   [&](const NodeExplanation* a, const NodeExplanation* b) {
                     const auto wins = [&](const NodeExplanation* node) {
                       return static_cast<std::int32_t>(node->row) == explanation.winner;
                     };
                     return wins(a) != wins(b) ? wins(a) : a->total > b->total;
                   });
  if (!fitting.empty()) {
    out += "\nnodes that fit (raw, normalised x weight):\n";
    fmt::format_to(append, "  {:<{}}  {:>6}", "node", width, "total");
    for (const ScoreLine& line : fitting[0]->scores) {
      fmt::format_to(append, "  {:>22}", line.score);
    }
    out += "\n";
    for (const NodeExplanation* node : fitting) {
      fmt::format_to(append, "  {:<{}}  {:>6}", node->name, width, node->total);
      for (const ScoreLine& line : node->scores) {
        fmt::format_to(append, "  {:>22}",
                       fmt::format("{}, {} x {}", line.raw, line.normalised, line.weight));
      }
      out += static_cast<std::int32_t>(node->row) == explanation.winner ? "  <- goes here"
             : node->best                                               ? "  equally good"
                                                                        : "";
      out += "\n";
    }
  }
  if (fitting.size() < explanation.nodes.size()) {
    out += "\nnodes that do not fit:\n";
    append_refused(explanation, width, &out);
  }
  return out;
}

std::string explanation_json(const Explanation& explanation) {
  Json nodes = Json::array();
  for (const NodeExplanation& node : explanation.nodes) nodes.push_back(json_of(node));
  Json out = {{"task", explanation.task},
              {"policy", explanation.policy},
              {"engine", explanation.engine},
              {"summary", explanation.summary},
              {"feasible", explanation.feasible}};
  if (explanation.winner >= 0) {
    out["winner"] = {{"row", explanation.winner},
                     {"node", explanation.winner_name},
                     {"score", explanation.winner_score},
                     {"gpu_mask", explanation.gpu_mask}};
  } else {
    out["winner"] = nullptr;
  }
  out["warnings"] = explanation.warnings;
  out["nodes"] = std::move(nodes);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace penstock
