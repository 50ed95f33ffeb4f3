#include "penstock/sched/explain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "penstock/engine/choice.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/sched/explain_domains.h"
#include "penstock/sched/kubernetes_cluster.h"
#include "penstock/sched/quantity.h"

namespace penstock {
namespace {

std::string amount_text(std::int64_t amount, const std::string& unit) {
  if (unit == "milli") return fmt::format("{}m", amount);
  if (unit == "bytes") return format_bytes(amount);
  if (unit == "MiB") return format_bytes(amount) + (amount == 0 ? "" : "Mi");
  return std::to_string(amount);
}

// Works on a table that nobody changes meanwhile.
class Explainer {
 public:
  Explainer(const NodeTable& table, const Program& program, const Task& task,
            const FilterReason& reason)
      : table_(table),
        cells_(table.view()),
        program_(program),
        task_(task.record),
        context_(cells_, program_.record, task_),
        reason_(reason),
        feasible_(table.rows()) {}

  void fill(Explanation* out);

 private:
  void filter(Explanation* out);
  void score(Explanation* out);
  void summarise(Explanation* out) const;
  std::string why(const penstock_column_op& op, const std::string& name, std::uint32_t row) const;
  std::string why_no_fit(const penstock_column_op& op, std::uint32_t row) const;

  const NodeTable& table_;
  const TableView cells_;
  const Program& program_;
  const penstock_task& task_;
  DecisionContext context_;
  const FilterReason& reason_;
  std::vector<std::uint8_t> feasible_;  // by row
};

std::string Explainer::why_no_fit(const penstock_column_op& op, std::uint32_t row) const {
  std::string words;
  for (std::uint32_t i = 0; i < op.n; ++i) {
    const std::uint32_t r = op.column[i];
    const std::int64_t asked = task_.request[r];
    const std::int64_t offered = cells_.column(cells_.allocatable, r)[row];
    const std::int64_t left = offered - cells_.column(cells_.requested, r)[row];
    if (asked == 0 || asked <= left) continue;
    const ResourceName& resource = table_.catalogue().resources()[r];
    words += words.empty() ? "" : "; ";
    if (resource.name == "pods") {
      words += fmt::format("too many pods: {} of {} are there", offered - left, offered);
      continue;
    }
    words += fmt::format("insufficient {}: asks {}, {} of {} left", resource.name,
                         amount_text(asked, resource.unit), amount_text(left, resource.unit),
                         amount_text(offered, resource.unit));
  }
  return words;
}

std::string Explainer::why(const penstock_column_op& op, const std::string& name,
                           std::uint32_t row) const {
  if (reason_) {
    if (std::string words = reason_(name, row); !words.empty()) return words;
  }
  switch (op.op) {
    case PENSTOCK_FILTER_FIT:
      return why_no_fit(op, row);
    case PENSTOCK_FILTER_GPU: {
      std::string free;
      for (std::uint32_t gpu = 0; gpu < table_.header().n_gpus; ++gpu) {
        free += fmt::format("{}{}", gpu == 0 ? "" : " ", cells_.column(cells_.gpu, gpu)[row]);
      }
      return fmt::format("insufficient GPUs: asks {} with {} thousandths free, there are {}",
                         task_.gpu_count, task_.gpu_milli, free);
    }
    case PENSTOCK_FILTER_ROW:
      return "another node is named";
    case PENSTOCK_FILTER_DOMAINS:
      return domains_reason(table_, context_, op, row);
    default:
      return name + " does not hold";
  }
}

void Explainer::filter(Explanation* out) {
  for (std::uint32_t row = 0; row < table_.rows(); ++row) {
    if (!table_.holds_node(row)) continue;
    NodeExplanation& node = out->nodes.emplace_back();
    node.row = row;
    node.name = table_.catalogue().node(row).name;
    node.feasible = true;
    for (std::uint32_t i = 0; i < program_.record.n_ops; ++i) {
      const penstock_column_op& op = program_.record.ops[i];
      if (PENSTOCK_COLUMN_OP_IS_SCORE(op.op)) continue;
      FilterVerdict& verdict = node.filters.emplace_back();
      verdict.filter = program_.names[i];
      verdict.passed = scalar_filter(context_, op, row);
      if (op.op == PENSTOCK_FILTER_DOMAINS) {
        verdict.numbers = domains_numbers(table_, context_, op, row);
      }
      if (verdict.passed) continue;
      verdict.reason = why(op, verdict.filter, row);
      node.feasible = false;
    }
    feasible_[row] = node.feasible ? 1 : 0;
    if (node.feasible) ++out->feasible;
  }
}

void Explainer::score(Explanation* out) {
  context_.weigh_domains(feasible_.data());
  std::vector<std::int64_t> scores(table_.rows());
  for (std::uint32_t i = 0; i < program_.record.n_ops; ++i) {
    const penstock_column_op& op = program_.record.ops[i];
    if (!PENSTOCK_COLUMN_OP_IS_SCORE(op.op)) continue;
    for (NodeExplanation& node : out->nodes) {
      if (!node.feasible) continue;
      ScoreLine& line = node.scores.emplace_back();
      line.score = program_.names[i];
      line.weight = op.weight;
      line.raw = scores[node.row] = scalar_score(context_, op, node.row);
    }
    scalar_normalise(op, task_, scores.data(), feasible_.data(), table_.rows());
    for (NodeExplanation& node : out->nodes) {
      if (!node.feasible) continue;
      ScoreLine& line = node.scores.back();
      line.normalised = scores[node.row];
      line.weighted = line.normalised * op.weight;
      node.total += line.weighted;
    }
  }
  std::int64_t most = INT64_MIN;
  for (const NodeExplanation& node : out->nodes) {
    if (node.feasible) most = std::max(most, node.total);
  }
  for (NodeExplanation& node : out->nodes) node.best = node.feasible && node.total == most;
}

void Explainer::summarise(Explanation* out) const {
  if (out->winner >= 0) {
    const auto best = std::count_if(out->nodes.begin(), out->nodes.end(),
                                    [](const NodeExplanation& node) { return node.best; });
    out->summary =
        fmt::format("{} goes to {} with score {}; {} of {} nodes fit", out->task, out->winner_name,
                    out->winner_score, out->feasible, out->nodes.size());
    if (best > 1) out->summary += fmt::format(", {} of them equally good", best);
    return;
  }
  // By what stands before the first colon, most frequent first: as kube-scheduler reports it, a
  // node counts for the filter that it fails first.
  std::map<std::string, std::size_t> reasons;
  for (const NodeExplanation& node : out->nodes) {
    const auto failed = std::find_if(node.filters.begin(), node.filters.end(),
                                     [](const FilterVerdict& verdict) { return !verdict.passed; });
    if (failed == node.filters.end()) continue;
    std::string_view words = failed->reason;
    while (!words.empty()) {
      const std::size_t end = std::min(words.find("; "), words.size());
      const std::string_view one = words.substr(0, end);
      ++reasons[std::string(one.substr(0, one.find(':')))];
      words.remove_prefix(std::min(end + 2, words.size()));
    }
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(reasons.begin(), reasons.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  out->summary =
      fmt::format("{} fits nowhere: 0/{} nodes are available", out->task, out->nodes.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    out->summary += fmt::format("{} {} {}", i == 0 ? ":" : ",", sorted[i].second, sorted[i].first);
  }
}

void Explainer::fill(Explanation* out) {
  filter(out);
  score(out);
  summarise(out);
}

}  // namespace

namespace {

Result<Explanation> explain_program(NodeTable& table, const std::string& policy,
                                    const Program& program, const Task& task,
                                    const FilterReason& reason) {
  Explanation out;
  out.task = task.name;
  out.policy = policy;
  out.engine = table.engine_name();
  out.warnings = task.unsupported;
  // The winner is the engine's own answer, and the nodes' scores have to agree with it.
  penstock_result decided{};
  PENSTOCK_TRY(table.select(program.record, {&task.record, 1}, false, &decided));
  if (decided.status == PENSTOCK_OK) {
    out.winner = decided.row;
    out.winner_name = table.catalogue().node(static_cast<std::uint32_t>(decided.row)).name;
    out.winner_score = decided.score;
    out.gpu_mask = decided.gpu_mask;
  }
  Explainer(table, program, task, reason).fill(&out);
  const auto winner =
      std::find_if(out.nodes.begin(), out.nodes.end(), [&](const NodeExplanation& node) {
        return static_cast<std::int32_t>(node.row) == out.winner;
      });
  const bool agrees = winner == out.nodes.end() ? out.winner < 0 && out.feasible == 0
                                                : winner->best && winner->total == out.winner_score;
  if (!agrees || decided.feasible != out.feasible) {
    return error(Code::internal, "engine {} put {} on row {} with {}, and the explanation differs",
                 out.engine, out.task, out.winner, out.winner_score);
  }
  return out;
}

}  // namespace

Result<Explanation> explain(NodeTable& table, const Policy& policy, const Task& task,
                            const FilterReason& reason) {
  PENSTOCK_ASSIGN(const Program program, compile_policy(policy, table));
  return explain_program(table, policy.name, program, task, reason);
}

Result<Explanation> explain(Cluster& cluster, const KubernetesPod& pod) {
  PENSTOCK_ASSIGN(const Task task, cluster.make_task(pod));
  PENSTOCK_ASSIGN(const Program program, cluster.make_program());
  return explain_program(cluster.table(), cluster.profile().scheduler_name, program, task,
                         kubernetes_reason(cluster, pod));
}

Result<Explanation> explain_pod(const KubernetesCluster& cluster, const std::string& pod,
                                const std::string& policy, const std::string& engine) {
  const KubernetesPod* found = nullptr;
  for (const KubernetesPod& candidate : cluster.pods) {
    const bool same =
        candidate.name == pod || (pod.find('/') == std::string::npos &&
                                  candidate.name.substr(candidate.name.find('/') + 1) == pod);
    if (!same) continue;
    if (found != nullptr) {
      return error(Code::invalid_argument, "there are pods {} and {}; name one with its namespace",
                   found->name, candidate.name);
    }
    found = &candidate;
  }
  if (found == nullptr) {
    std::string some;
    for (std::size_t i = 0; i < std::min<std::size_t>(cluster.pods.size(), 8); ++i) {
      some += (i == 0 ? "" : ", ") + cluster.pods[i].name;
    }
    return error(Code::not_found,
                 "there is no pod '{}' that is placed or pending; of {} there are {}", pod,
                 cluster.pods.size(), some.empty() ? "none" : some);
  }
  PENSTOCK_ASSIGN(ClusterConfig config, cluster_config(policy));
  PENSTOCK_ASSIGN(config.engine, make_engine(engine, needs_of_decisions()));
  PENSTOCK_ASSIGN(auto made, make_kubernetes_cluster(cluster, std::move(config), found->name));
  KubernetesPod asked = *found;
  asked.node_name.clear();
  PENSTOCK_ASSIGN(Explanation out, explain(*made, asked));
  out.warnings.insert(out.warnings.end(), cluster.warnings.begin(), cluster.warnings.end());
  if (!found->node_name.empty()) {
    out.warnings.push_back(fmt::format("{} runs on {}; it is explained as if it did not run yet",
                                       found->name, found->node_name));
  }
  return out;
}

}  // namespace penstock
