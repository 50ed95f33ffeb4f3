// A pod as a task, and the profile as a program.
#include <algorithm>
#include <bit>

#include "penstock/sched/cluster_state.h"
#include "penstock/sched/pod_affinity.h"
#include "penstock/sched/ports.h"
#include "penstock/sched/profile_policy.h"
#include "penstock/sched/taints.h"

namespace penstock {

void Cluster::State::fill_requests(const KubernetesPod& pod, penstock_task* record) const {
  const Catalogue& catalogue = table->catalogue();
  const auto fill = [&](const Amounts& amounts, std::int64_t* out) {
    for (const auto& [name, amount] : amounts) {
      // What has no column is asked for by nobody: see reserve_resources.
      if (const std::int32_t column = catalogue.find_resource(name); column >= 0) {
        out[column] = amount;
      }
    }
    out[catalogue.find_resource("pods")] = 1;
  };
  fill(pod.request, record->request);
  fill(pod.scored_request, record->scored_request);
}

Status Cluster::State::add_images(const KubernetesPod& pod,
                                  std::vector<penstock_domain_term>* terms) {
  std::vector<std::string> wanted;
  bool there = false;
  for (const std::string& name : pod.images) {
    wanted.push_back(normalised_image_name(name));
    there = there || images.contains(wanted.back());
  }
  if (!there) return {};  // 0 on every node
  std::sort(wanted.begin(), wanted.end());
  std::string key = fmt::format("images of {}", pod.containers);
  for (const std::string& name : wanted) key += " " + key_part(name);
  const auto values = [&] {
    std::vector<std::int32_t> out(table->rows());
    for (std::uint32_t row = 0; row < table->rows(); ++row) {
      if (!table->holds_node(row)) continue;
      out[row] = static_cast<std::int32_t>(
          image_locality_score(wanted, pod.containers, nodes.at(table->catalogue().node(row).name),
                               images, static_cast<std::uint32_t>(nodes.size())));
    }
    return out;
  };
  PENSTOCK_ASSIGN(const auto column, columns.rows(key, nodes_changed, values));
  penstock_domain_term term{};
  term.domain = column.domain;
  term.count = column.count;
  term.group = static_cast<std::uint8_t>(TermGroup::images);
  term.weight = 1;
  term.domains = column.domains;
  terms->push_back(term);
  return {};
}

Status Cluster::State::add_pod_terms(const KubernetesPod& pod, PodClass* of, Task* task) {
  std::vector<penstock_domain_term> terms;
  if (filters_spread) {
    const SpreadSet set = spread_constraints(config.profile, pod, owners, true);
    PENSTOCK_TRY(add_spread_filter(table.get(), &columns, set, pod, &terms));
  }
  const PodAffinityInput input = {config.profile, pod, *of, classes.met(of, namespaces),
                                  namespaces};
  if (filters_pod_affinity) PENSTOCK_TRY(add_pod_affinity_filter(&columns, input, &terms));
  if (scores_spread) {
    const SpreadSet set = spread_constraints(config.profile, pod, owners, false);
    PENSTOCK_TRY(add_spread_score(table.get(), &columns, set, pod, &terms));
  }
  if (scores_pod_affinity) PENSTOCK_TRY(add_pod_affinity_score(&columns, input, &terms));
  if (scores_images) PENSTOCK_TRY(add_images(pod, &terms));
  if (terms.size() > PENSTOCK_MAX_DOMAIN_TERMS) PENSTOCK_TRY(fold_terms(pod, &terms));
  task->once = task->once || std::any_of(terms.begin(), terms.end(), [this](const auto& term) {
                 return is_for_one_decision(term);
               });
  task->record.n_domain_terms = static_cast<std::uint32_t>(terms.size());
  std::copy(terms.begin(), terms.end(), task->record.domain_terms);
  // After every column is there: the pod counts in those that were made for it, too.
  std::vector<penstock_raise> raises = columns.raises(of);
  const std::size_t n = std::min<std::size_t>(raises.size(), PENSTOCK_MAX_RAISES);
  task->record.n_raises = static_cast<std::uint32_t>(n);
  std::copy_n(raises.begin(), n, task->record.raises);
  task->more_raises.assign(raises.begin() + static_cast<std::ptrdiff_t>(n), raises.end());
  return {};
}

Result<Task> Cluster::State::build_task(const KubernetesPod& pod) {
  Task task;
  task.name = pod.name;
  task.unsupported = pod.unsupported;
  fill_requests(pod, &task.record);
  if (!pod.node_name.empty()) {
    const std::int32_t row = row_of(pod.node_name);
    // A row that no table has: there is no such node.
    task.record.row = row >= 0 ? row : std::int64_t{PENSTOCK_MAX_ROWS} - 1;
  }
  PENSTOCK_TRY(add_taint_terms(table.get(), pod.tolerations, &task));
  PENSTOCK_TRY(add_affinity_terms(table.get(), pod, &task, added));
  PENSTOCK_TRY(add_ports(pod, &task));
  PENSTOCK_TRY(add_pod_terms(pod, classes.find(pod), &task));
  return task;
}

// Host ports; where a record has no room for so many, one column that says which nodes have them
// free now.
Status Cluster::State::add_ports(const KubernetesPod& pod, Task* task) {
  if (pod.ports.size() <= kMaxTaskPorts) return add_port_terms(table.get(), pod.ports, task);
  std::vector<std::int32_t> taken;
  for (const auto& [node, there] : pods_of) {
    const std::int32_t row = row_of(node);
    const bool conflicts = std::any_of(there.begin(), there.end(), [&](const PlacedPod* placed) {
      return std::any_of(pod.ports.begin(), pod.ports.end(), [&](const HostPort& ours) {
        return std::any_of(placed->pod.ports.begin(), placed->pod.ports.end(),
                           [&](const HostPort& theirs) { return conflict(ours, theirs); });
      });
    });
    if (row >= 0 && conflicts) taken.push_back(row);
  }
  PENSTOCK_ASSIGN(const std::uint16_t column, mark_rows("ports of one pod taken", taken));
  task->once = true;
  return add_term(task, TermGroup::ports, column, true);
}

Result<std::uint16_t> Cluster::State::mark_rows(const std::string& key,
                                                const std::vector<std::int32_t>& rows) {
  PENSTOCK_ASSIGN(const std::uint16_t column, table->state_column(key));
  std::vector<std::uint64_t> wanted((table->rows() + 63) / 64);
  for (const std::int32_t row : rows) {
    wanted[static_cast<std::size_t>(row) / 64] |= std::uint64_t{1} << (row % 64);
  }
  const std::uint64_t* cells = table->view().bit_column(column);
  std::vector<penstock_update> updates;
  for (std::size_t word = 0; word < wanted.size(); ++word) {
    for (std::uint64_t differs = cells[word] ^ wanted[word]; differs != 0; differs &= differs - 1) {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(differs));
      updates.push_back({PENSTOCK_UPDATE_BIT, PENSTOCK_UPDATE_SET, column,
                         static_cast<std::uint32_t>(word * 64) + bit, 0,
                         static_cast<std::int64_t>(wanted[word] >> bit & 1)});
    }
  }
  PENSTOCK_TRY(table->update(updates));
  return column;
}

Result<Task> Cluster::State::make_task(const KubernetesPod& pod) {
  PENSTOCK_TRY(usable());
  if (const Task* known = tasks.find(pod, version()); known != nullptr) {
    table->new_batch();
    table->touch(known->record);
    Task task = *known;
    task.name = pod.name;
    return task;
  }
  PENSTOCK_TRY(check_pod(pod));
  PENSTOCK_TRY(reserve_resources(pod.request, "pod " + pod.name));
  classes.sweep();
  for (;;) {
    table->new_batch();
    auto task = build_task(pod);
    if (task.ok() && !task.value().once && task.value().more_raises.empty()) {
      tasks.put(pod, version(), task.value());
    }
    if (task.ok() || task.status().code() != Code::no_space) return task;
    // Ends: columns double until there may be no more.
    PENSTOCK_TRY(more_columns(task.status()));
  }
}

Result<Program> Cluster::State::make_program(std::uint32_t best, bool filters,
                                             bool candidates) const {
  SchedulerProfile profile = config.profile;
  if (!filters) profile.filters.clear();
  CompileOptions options;
  options.best = best;
  options.seed = config.seed;
  PENSTOCK_ASSIGN(Program program, compile_profile(profile, *table, options, config.tie));
  if (!candidates) return program;
  if (program.record.n_ops == PENSTOCK_MAX_OPS) {
    return error(Code::no_space, "profile '{}': no room for one more filter",
                 profile.scheduler_name);
  }
  penstock_column_op* ops = program.record.ops;
  std::copy_backward(ops, ops + program.record.n_ops, ops + program.record.n_ops + 1);
  ops[0] = {};
  ops[0].op = PENSTOCK_FILTER_BITS;
  ops[0].group = static_cast<std::uint8_t>(TermGroup::candidates);
  ++program.record.n_ops;
  program.names.insert(program.names.begin(), "candidates");
  return program;
}

Result<std::shared_ptr<const Program>> Cluster::State::program_of(std::uint32_t best, bool filters,
                                                                  bool candidates) {
  auto& known = programs[{tables_made, best, filters, candidates}];
  if (known == nullptr) {
    auto made = make_program(best, filters, candidates);
    if (!made.ok()) return made.status();
    known = std::make_shared<const Program>(std::move(made).value());
    std::erase_if(programs,
                  [this](const auto& entry) { return std::get<0>(entry.first) != tables_made; });
  }
  return known;
}

Result<Task> Cluster::make_task(const KubernetesPod& pod) { return state_->make_task(pod); }

Result<Program> Cluster::make_program(std::uint32_t best) {
  PENSTOCK_TRY(state_->usable());
  PENSTOCK_ASSIGN(const auto program, state_->program_of(best, true, false));
  return *program;
}

}  // namespace penstock
