// Decisions of a cluster, and what its plugins say node by node.
#include <algorithm>
#include <map>

#include "penstock/sched/cluster_state.h"

namespace penstock {
namespace {

constexpr const char* kSuccess = "Success";
constexpr const char* kUnschedulable = "Unschedulable";
constexpr const char* kUnresolvable = "UnschedulableAndUnresolvable";

// As kube-scheduler puts it together: how many nodes have each reason, in the order of the texts.
std::string why_none(const std::vector<NodeVerdict>& verdicts) {
  std::map<std::string, std::size_t> counts;
  for (const NodeVerdict& verdict : verdicts) {
    for (const std::string& reason : verdict.reasons) ++counts[reason];
  }
  std::vector<std::string> parts;
  for (const auto& [reason, count] : counts) parts.push_back(fmt::format("{} {}", count, reason));
  std::sort(parts.begin(), parts.end());
  std::string text = fmt::format("0/{} nodes are available", verdicts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? ": " : ", ") + parts[i];
  return text + ".";
}

bool asks_any(const penstock_column_op& op, const penstock_task& task) {
  return std::any_of(op.column, op.column + op.n,
                     [&](std::uint16_t column) { return task.request[column] > 0; });
}

}  // namespace

std::vector<std::int32_t> Cluster::State::rows_of(std::span<const std::string> names) const {
  std::vector<std::int32_t> rows;
  for (const std::string& name : names) rows.push_back(row_of(name));
  if (!names.empty()) return rows;
  for (std::uint32_t row = 0; row < table->rows(); ++row) {
    if (table->holds_node(row)) rows.push_back(static_cast<std::int32_t>(row));
  }
  return rows;
}

Result<Cluster::State::Prepared> Cluster::State::prepare(const KubernetesPod& pod,
                                                         std::uint32_t best, bool filters,
                                                         std::span<const std::string> candidates,
                                                         bool all_nodes) {
  if (best < 1 || best > PENSTOCK_MAX_BEST) {
    return error(Code::invalid_argument, "{} best nodes, expected 1 to {}", best,
                 PENSTOCK_MAX_BEST);
  }
  Prepared out;
  for (;;) {
    PENSTOCK_ASSIGN(out.task, make_task(pod));
    PENSTOCK_ASSIGN(out.program, program_of(best, filters, !all_nodes));
    out.first_filter = all_nodes ? 0 : 1;
    out.first_score = out.first_filter;
    if (filters) out.first_score += static_cast<std::uint32_t>(config.profile.filters.size());
    if (all_nodes) return out;
    std::vector<std::int32_t> rows;
    if (!candidates.empty()) rows = rows_of(candidates);
    std::erase(rows, -1);
    const auto column = mark_rows("candidates", rows);
    if (column.ok()) {
      PENSTOCK_TRY(add_term(&out.task, TermGroup::candidates, column.value(), false));
      return out;
    }
    PENSTOCK_TRY(more_columns(column.status()));
  }
}

NodeVerdict Cluster::State::verdict(const Prepared& prepared, const DecisionContext& context,
                                    const TableView& cells, const KubernetesPod& pod,
                                    std::uint32_t row) const {
  NodeVerdict out;
  out.node = table->catalogue().node(row).name;
  for (std::uint32_t i = prepared.first_filter; i < prepared.first_score; ++i) {
    const penstock_column_op& op = prepared.program->record.ops[i];
    if (scalar_filter(context, op, row)) continue;
    out.plugin = config.profile.filters[i - prepared.first_filter];
    Refusal refused =
        refusal(prepared.program->names[i], {*table, cells, config.profile, context, op, pod, row});
    out.code = refused.unresolvable ? kUnresolvable : kUnschedulable;
    out.reasons = std::move(refused.reasons);
    return out;
  }
  out.feasible = true;
  out.code = kSuccess;
  return out;
}

Status Cluster::State::compare(const Prepared& prepared, std::uint32_t feasible,
                               const std::vector<std::int64_t>* totals) {
  penstock_result result{};
  // A scan by the engine's own instructions, where decisions may be kept up to date otherwise.
  if (const Kernels* kernels = engine->direct_kernels(); kernels != nullptr) {
    kernels->select(table->view(), prepared.program->record, prepared.task.record, false, &result);
  } else {
    PENSTOCK_TRY(
        table->select(prepared.program->record, {&prepared.task.record, 1}, false, &result));
  }
  bool same = result.feasible == feasible;
  for (std::uint32_t i = 0; same && totals != nullptr && i < result.n_best; ++i) {
    same = (*totals)[static_cast<std::size_t>(result.best[i].row)] == result.best[i].score;
  }
  if (same) return {};
  return error(Code::internal, "engine {} finds other nodes or scores for {} than its definition",
               table->engine_name(), prepared.task.name);
}

// ---- decide ----

Result<PodDecision> Cluster::decide(const KubernetesPod& pod, bool commit, std::uint32_t best,
                                    std::span<const std::string> candidates) {
  State& s = *state_;
  PENSTOCK_TRY(s.usable());
  if (commit && s.pods.contains(pod.name)) {
    return error(Code::already_exists, "pod {} has a node already", pod.name);
  }
  if (commit && s.pods.size() >= PENSTOCK_MAX_DOMAIN_COUNT) {
    return error(Code::no_space, "pod {}: at most {} pods that have a node are counted", pod.name,
                 PENSTOCK_MAX_DOMAIN_COUNT);
  }
  PENSTOCK_ASSIGN(const State::Prepared prepared,
                  s.prepare(pod, best, true, candidates, candidates.empty()));
  const Task& task = prepared.task;
  // What the record does not hold is put on the node by the host.
  const bool by_host = task.once || !task.more_raises.empty();
  penstock_result result{};
  PENSTOCK_TRY(
      s.table->select(prepared.program->record, {&task.record, 1}, commit && !by_host, &result));
  PodDecision out;
  out.feasible = result.feasible;
  const auto name_of = [&s](std::int32_t row) {
    return s.table->catalogue().node(static_cast<std::uint32_t>(row)).name;
  };
  if (result.status == PENSTOCK_OUT_OF_RANGE) {
    return error(Code::out_of_range, "pod {}: on '{}' a cell of the table would leave its bounds",
                 pod.name, name_of(result.row));
  }
  if (result.status != PENSTOCK_OK) {
    PENSTOCK_ASSIGN(const auto verdicts, filter(pod, candidates));
    out.reason = why_none(verdicts);
    return out;
  }
  out.node = name_of(result.row);
  out.score = result.score;
  for (std::uint32_t i = 0; i < result.n_best; ++i) {
    out.best.emplace_back(name_of(result.best[i].row), result.best[i].score);
  }
  if (!commit) return out;
  KubernetesPod placed = pod;
  placed.node_name = out.node;
  if (by_host) {
    PENSTOCK_TRY(s.put_pod(placed));
  } else {
    s.remember(placed);
  }
  return out;
}

Status Cluster::assume(const KubernetesPod& pod, const std::string& node) {
  PENSTOCK_TRY(state_->usable());
  if (!state_->nodes.contains(node)) {
    return error(Code::not_found, "there is no node '{}' for pod {}", node, pod.name);
  }
  KubernetesPod placed = pod;
  placed.node_name = node;
  return state_->put_pod(placed);
}

Status Cluster::forget(const std::string& key) { return remove_pod(key); }

Status Cluster::assume_committed(const KubernetesPod& pod, std::uint32_t row) {
  State& s = *state_;
  PENSTOCK_TRY(s.usable());
  PENSTOCK_TRY(s.check_pod(pod));
  if (!s.table->holds_node(row)) {
    return error(Code::not_found, "row {} of the node table holds no node", row);
  }
  if (s.pods.contains(pod.name)) {
    return error(Code::already_exists, "pod {} has a node already", pod.name);
  }
  KubernetesPod placed = pod;
  placed.node_name = s.table->catalogue().node(row).name;
  return s.note_committed(s.remember(placed), row);
}

// ---- what each plugin says ----

Result<std::vector<NodeVerdict>> Cluster::filter(const KubernetesPod& pod,
                                                 std::span<const std::string> candidates) {
  State& s = *state_;
  PENSTOCK_TRY(s.usable());
  PENSTOCK_ASSIGN(const State::Prepared prepared,
                  s.prepare(pod, 1, true, candidates, candidates.empty()));
  const std::vector<std::int32_t> rows = s.rows_of(candidates);
  const TableView cells = s.table->view();
  const DecisionContext context(cells, prepared.program->record, prepared.task.record);
  std::vector<NodeVerdict> out;
  std::set<std::int32_t> feasible;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0) {
      out.push_back({candidates[i], false, "", kUnresolvable, {"node is not known"}});
      continue;
    }
    out.push_back(s.verdict(prepared, context, cells, pod, static_cast<std::uint32_t>(rows[i])));
    if (out.back().feasible) feasible.insert(rows[i]);
  }
  PENSTOCK_TRY(s.compare(prepared, static_cast<std::uint32_t>(feasible.size()), nullptr));
  return out;
}

bool Cluster::State::is_skipped(const std::string& score, const Prepared& prepared,
                                const penstock_column_op& op, const KubernetesPod& pod) const {
  const penstock_task& task = prepared.task.record;
  const auto* terms = task.domain_terms;
  if (score == "node-affinity") return pod.preferred.empty() && added.preferred.empty();
  if (score == "balanced-allocation") return !asks_any(op, task);
  if (score == "spread") return scalar_is_idle(op, task);
  if (score != "pod-affinity") return false;
  // It has something to say when a term picks a pod anywhere.
  const TableView cells = table->view();
  return std::none_of(terms, terms + task.n_domain_terms, [&](const penstock_domain_term& term) {
    const std::int32_t* counts = cells.count_column(term.count);
    return term.group == op.group &&
           std::any_of(counts, counts + term.domains, [](std::int32_t n) { return n > 0; });
  });
}

Result<std::vector<PluginScores>> Cluster::score(const KubernetesPod& pod,
                                                 std::span<const std::string> candidates) {
  State& s = *state_;
  PENSTOCK_TRY(s.usable());
  for (const std::string& name : candidates) {
    if (!s.nodes.contains(name)) return error(Code::not_found, "there is no node '{}'", name);
  }
  PENSTOCK_ASSIGN(const State::Prepared prepared,
                  s.prepare(pod, PENSTOCK_MAX_BEST, false, candidates, false));
  std::vector<std::int32_t> rows;
  if (!candidates.empty()) rows = s.rows_of(candidates);
  const penstock_program& program = prepared.program->record;
  const penstock_task& task = prepared.task.record;
  const TableView cells = s.table->view();
  const std::uint32_t table_rows = s.table->rows();
  std::vector<std::uint8_t> feasible(table_rows);
  for (const std::int32_t row : rows) feasible[static_cast<std::size_t>(row)] = 1;
  DecisionContext context(cells, program, task);
  context.weigh_domains(feasible.data());
  std::vector<PluginScores> out;
  std::vector<std::int64_t> values(table_rows), totals(table_rows);
  for (std::uint32_t i = prepared.first_score; i < program.n_ops; ++i) {
    const penstock_column_op& op = program.ops[i];
    PluginScores& scores = out.emplace_back();
    scores.plugin = s.config.profile.scores[i - prepared.first_score].name;
    scores.weight = op.weight;
    scores.skipped = s.is_skipped(prepared.program->names[i], prepared, op, pod);
    for (const std::int32_t row : rows) {
      const auto at = static_cast<std::uint32_t>(row);
      values[at] = scalar_score(context, op, at);
      scores.raw.push_back(values[at]);
    }
    scalar_normalise(op, task, values.data(), feasible.data(), table_rows);
    for (const std::int32_t row : rows) {
      scores.normalised.push_back(values[static_cast<std::size_t>(row)]);
    }
    for (std::uint32_t row = 0; row < table_rows; ++row) {
      if (feasible[row] != 0) totals[row] += values[row] * op.weight;
    }
  }
  const auto count = std::count(feasible.begin(), feasible.end(), std::uint8_t{1});
  PENSTOCK_TRY(s.compare(prepared, static_cast<std::uint32_t>(count), &totals));
  return out;
}

}  // namespace penstock
