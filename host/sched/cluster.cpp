#include "penstock/sched/cluster.h"

#include <algorithm>
#include <set>
#include <utility>

#include "penstock/engine/choice.h"
#include "penstock/sched/cluster_state.h"
#include "penstock/sched/profile_policy.h"

namespace penstock {
namespace {

// By kube-scheduler's name or that of policy.h.
bool runs(const std::vector<std::string>& filters, const char* plugin, const char* name) {
  return std::any_of(filters.begin(), filters.end(),
                     [&](const std::string& filter) { return filter == plugin || filter == name; });
}

bool runs(const std::vector<PolicyScore>& scores, const char* plugin, const char* name) {
  return std::any_of(scores.begin(), scores.end(), [&](const PolicyScore& score) {
    return score.name == plugin || score.name == name;
  });
}

}  // namespace

Cluster::Cluster(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cluster::~Cluster() = default;

Result<std::unique_ptr<Cluster>> Cluster::create(const ClusterConfig& config) {
  auto state = std::make_unique<State>();
  state->config = config;
  state->engine = config.engine;
  if (state->engine == nullptr) {
    PENSTOCK_ASSIGN(state->engine, make_engine("auto", needs_of_decisions()));
  }
  const SchedulerProfile& profile = config.profile;
  state->added = {profile.has_added_required, profile.added_required, profile.added_preferred};
  state->filters_spread = runs(profile.filters, "PodTopologySpread", "spread");
  state->filters_pod_affinity = runs(profile.filters, "InterPodAffinity", "pod-affinity");
  state->scores_spread = runs(profile.scores, "PodTopologySpread", "spread");
  state->scores_pod_affinity = runs(profile.scores, "InterPodAffinity", "pod-affinity");
  state->scores_images = runs(profile.scores, "ImageLocality", "image-locality");
  state->capacity = std::max<std::uint32_t>(config.capacity, 1);
  state->bit_columns = std::max<std::uint32_t>(config.bit_columns, PENSTOCK_BIT_FIRST_FREE + 1);
  state->domain_columns = std::max<std::uint32_t>(config.domain_columns, 1);
  state->count_columns = std::max<std::uint32_t>(config.count_columns, 1);
  state->resources = {
      {"cpu", "milli"}, {"memory", "bytes"}, {"ephemeral-storage", "bytes"}, {"pods", ""}};
  Amounts scored;
  for (const auto* list : {&profile.fit_resources, &profile.balanced_resources}) {
    for (const ScoringResource& resource : *list) scored[resource.name] = 1;
  }
  PENSTOCK_TRY(state->reserve_resources(scored, "the profile"));
  PENSTOCK_TRY(state->make_table(&state->table));
  PENSTOCK_TRY(state->fill_table({}));
  // What is wrong with the profile is said now.
  const auto program = state->make_program(1, true, false);
  if (!program.ok()) return program.status();
  return std::unique_ptr<Cluster>(new Cluster(std::move(state)));
}

// ---- what there is ----

Status Cluster::put_node(const KubernetesNode& node) {
  State& s = *state_;
  PENSTOCK_TRY(s.usable());
  const std::string& name = node.facts.name;
  if (name.empty()) return error(Code::invalid_argument, "a node has no name");
  for (const auto& [resource, amount] : node.allocatable) {
    if (amount >= 0 && amount <= PENSTOCK_MAX_QUANTITY) continue;
    return error(Code::out_of_range, "node '{}': {} is {}, expected 0 to {}", name, resource,
                 amount, PENSTOCK_MAX_QUANTITY);
  }
  const auto known = s.nodes.find(name);
  if (known != s.nodes.end() && known->second == node) return {};
  ++s.nodes_changed;
  s.table->new_batch();
  std::vector<penstock_update> updates;
  if (known == s.nodes.end()) {
    PENSTOCK_TRY(s.reserve_row());
    const NodeSpec spec = s.spec_of(node);
    PENSTOCK_TRY(s.table->add_nodes({&spec, 1}));
    s.nodes[name] = node;
    count_images(node, 1, &s.images);
    // Pods that were there before their node hold it now.
    const auto row = static_cast<std::uint32_t>(s.row_of(name));
    s.columns.set_row(row, &s.pods_of[name]);
    s.columns.append_row(row, 1, &updates);
    Status status = s.table->update(updates);
    for (PlacedPod* placed : std::vector<PlacedPod*>(s.pods_of[name])) {
      if (status.ok()) status = s.hold(placed, 1);
    }
    // For lack of columns for their ports everything is put on a larger table, this node with it.
    if (status.code() == Code::no_space) status = s.more_columns(status);
    // What they ask for together may be more than a cell holds. A row that goes is cleared.
    if (!status.ok()) PENSTOCK_TRY(remove_node(name));
    return status;
  }
  const auto row = static_cast<std::uint32_t>(s.row_of(name));
  s.columns.append_row(row, -1, &updates);
  PENSTOCK_TRY(s.table->update(updates));
  Status status = s.table->change_node(row, s.spec_of(node));
  if (status.ok()) {
    count_images(known->second, -1, &s.images);
    count_images(node, 1, &s.images);
    known->second = node;
  }
  updates.clear();
  s.columns.append_row(row, 1, &updates);
  PENSTOCK_TRY(s.table->update(updates));
  return status;
}

Status Cluster::remove_node(const std::string& name) {
  State& s = *state_;
  PENSTOCK_TRY(s.usable());
  const auto known = s.nodes.find(name);
  if (known == s.nodes.end()) return {};
  ++s.nodes_changed;
  const auto row = static_cast<std::uint32_t>(s.row_of(name));
  std::vector<penstock_update> updates;
  s.columns.append_row(row, -1, &updates);
  PENSTOCK_TRY(s.table->update(updates));
  PENSTOCK_TRY(s.table->remove_node(row));
  s.columns.set_row(row, nullptr);
  count_images(known->second, -1, &s.images);
  s.nodes.erase(known);
  if (s.pods_of[name].empty()) s.pods_of.erase(name);
  return {};
}

Status Cluster::put_pod(const KubernetesPod& pod) {
  PENSTOCK_TRY(state_->usable());
  return state_->put_pod(pod);
}

Status Cluster::remove_pod(const std::string& key) {
  PENSTOCK_TRY(state_->usable());
  return state_->remove_pod(key);
}

Status Cluster::put_namespace(const std::string& name,
                              const std::map<std::string, std::string>& labels) {
  State& s = *state_;
  PENSTOCK_TRY(s.usable());
  if (name.empty()) return error(Code::invalid_argument, "a namespace has no name");
  const auto [known, is_new] = s.namespaces.try_emplace(name, labels);
  if (!is_new && known->second == labels) return {};
  known->second = labels;
  s.columns.drop_by_namespaces();
  s.classes.forget_met();
  return {};
}

Status Cluster::remove_namespace(const std::string& name) {
  PENSTOCK_TRY(state_->usable());
  if (state_->namespaces.erase(name) == 0) return {};
  state_->columns.drop_by_namespaces();
  state_->classes.forget_met();
  return {};
}

Status Cluster::put_owner(const KubernetesOwner& owner) {
  if (owner.name.empty() || owner.kind.empty()) {
    return error(Code::invalid_argument, "an owner of pods has no name or no kind");
  }
  KubernetesOwner& known = state_->owners[{owner.kind, owner.namespace_name + "/" + owner.name}];
  if (known == owner) return {};
  known = owner;
  ++state_->changed;
  return {};
}

Status Cluster::remove_owner(const std::string& kind, const std::string& key) {
  if (state_->owners.erase({kind, key}) > 0) ++state_->changed;
  return {};
}

Status Cluster::put_all(const KubernetesCluster& cluster) {
  std::set<std::string> nodes, pods, spaces;
  std::set<std::pair<std::string, std::string>> owners;
  for (const KubernetesNode& node : cluster.nodes) nodes.insert(node.facts.name);
  for (const KubernetesPod& pod : cluster.pods) pods.insert(pod.name);
  for (const KubernetesNamespace& space : cluster.namespaces) spaces.insert(space.name);
  for (const KubernetesOwner& owner : cluster.owners) {
    owners.insert({owner.kind, owner.namespace_name + "/" + owner.name});
  }
  std::vector<std::string> gone;
  for (const auto& [key, placed] : state_->pods) {
    if (!pods.contains(key)) gone.push_back(key);
  }
  for (const std::string& key : gone) PENSTOCK_TRY(remove_pod(key));
  for (const std::string& name : node_names()) {
    if (!nodes.contains(name)) PENSTOCK_TRY(remove_node(name));
  }
  const NamespaceLabels known_spaces = state_->namespaces;
  for (const auto& [name, labels] : known_spaces) {
    if (!spaces.contains(name)) PENSTOCK_TRY(remove_namespace(name));
  }
  const Owners known_owners = state_->owners;
  for (const auto& [key, owner] : known_owners) {
    if (!owners.contains(key)) PENSTOCK_TRY(remove_owner(key.first, key.second));
  }
  for (const KubernetesNamespace& space : cluster.namespaces) {
    PENSTOCK_TRY(put_namespace(space.name, space.labels));
  }
  for (const KubernetesOwner& owner : cluster.owners) PENSTOCK_TRY(put_owner(owner));
  for (const KubernetesNode& node : cluster.nodes) PENSTOCK_TRY(put_node(node));
  for (const KubernetesPod& pod : cluster.pods) PENSTOCK_TRY(put_pod(pod));
  return {};
}

// ---- reading ----

NodeTable& Cluster::table() {
  PENSTOCK_CHECK(state_->table != nullptr, "no memory was left for the table");
  return *state_->table;
}
const NodeTable& Cluster::table() const { return const_cast<Cluster*>(this)->table(); }
const Catalogue& Cluster::catalogue() const { return table().catalogue(); }
const SchedulerProfile& Cluster::profile() const { return state_->config.profile; }
const std::string& Cluster::engine_name() const { return table().engine_name(); }

const KubernetesNode* Cluster::find_node(const std::string& name) const {
  const auto found = state_->nodes.find(name);
  return found == state_->nodes.end() ? nullptr : &found->second;
}

const KubernetesPod* Cluster::find_pod(const std::string& key) const {
  const auto found = state_->pods.find(key);
  return found == state_->pods.end() ? nullptr : &found->second.pod;
}

std::vector<std::string> Cluster::node_names() const { return state_->names_by_row(); }

std::vector<const KubernetesPod*> Cluster::pods_on(const std::string& node) const {
  std::vector<const KubernetesPod*> out;
  const auto found = state_->pods_of.find(node);
  if (found == state_->pods_of.end()) return out;
  for (const PlacedPod* placed : found->second) out.push_back(&placed->pod);
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  return out;
}

std::size_t Cluster::pod_count() const { return state_->pods.size(); }
std::uint64_t Cluster::version() const { return state_->version(); }

}  // namespace penstock
