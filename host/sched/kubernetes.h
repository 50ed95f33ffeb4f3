// Reads what `kubectl get nodes,pods -A -o json` prints: a List (also NodeList, PodList, or a
// single object), with namespaces, services, replicationcontrollers, replicasets and statefulsets
// if they are asked for, too. The fields are those of the Kubernetes API v1; what has no part in a
// decision is ignored. Pods that have ended (Succeeded, Failed) are left out.
#ifndef PENSTOCK_SCHED_KUBERNETES_H_
#define PENSTOCK_SCHED_KUBERNETES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/node_facts.h"

namespace penstock {

// Amounts by resource name: "cpu" in thousandths of a core, "memory" and "ephemeral-storage" in
// bytes, everything else in units.
using Amounts = std::map<std::string, std::int64_t>;

// What status.images lists: one image under all of its names.
struct NodeImage {
  std::vector<std::string> names;  // as listed, "registry/name:tag" or with a digest
  std::int64_t bytes = 0;          // 0..PENSTOCK_MAX_QUANTITY
  bool operator==(const NodeImage&) const = default;
};

struct KubernetesNode {
  NodeFacts facts;
  Amounts allocatable;
  bool unschedulable = false;
  std::vector<NodeImage> images;
  bool operator==(const KubernetesNode&) const = default;
};

struct Toleration {
  std::string key;        // "" with Exists: every taint
  std::string operation;  // Equal or Exists; Gt and Lt tolerate nothing unless `compares`
  std::string value;
  std::string effect;     // "": every effect
  bool compares = false;  // the feature gate TaintTolerationComparisonOperators, which v1.34 lacks
  bool operator==(const Toleration&) const = default;
};

// key operation values: In, NotIn, Exists, DoesNotExist, Gt, Lt. An expression of matchFields has
// the key "metadata.name".
struct Requirement {
  std::string key;
  std::string operation;
  std::vector<std::string> values;
  bool operator==(const Requirement&) const = default;
};

// All of its requirements hold; a term without any matches nothing.
struct SelectorTerm {
  std::vector<Requirement> labels;
  std::vector<Requirement> fields;
  bool operator==(const SelectorTerm&) const = default;
};

struct PreferredTerm {
  std::int32_t weight = 1;  // 1..100
  SelectorTerm term;
  bool operator==(const PreferredTerm&) const = default;
};

// metav1.LabelSelector. An absent one matches nothing, one without requirements everything.
struct LabelSelector {
  bool present = false;
  std::map<std::string, std::string> labels;
  std::vector<Requirement> expressions;  // In, NotIn, Exists, DoesNotExist
  bool operator==(const LabelSelector&) const = default;
};

// A topology spread constraint of a pod, or a default one of a scheduler's configuration.
struct SpreadConstraint {
  std::int32_t max_skew = 1;  // from 1 on
  std::string topology_key;
  bool required = true;  // whenUnsatisfiable: DoNotSchedule; else ScheduleAnyway
  LabelSelector selector;
  std::vector<std::string> match_label_keys;
  std::int32_t min_domains = 1;     // from 1 on; only of required ones
  bool honor_node_affinity = true;  // nodeAffinityPolicy
  bool honor_node_taints = false;   // nodeTaintsPolicy
  bool operator==(const SpreadConstraint&) const = default;
};

// A term of podAffinity or podAntiAffinity.
struct PodAffinityTerm {
  LabelSelector selector;
  std::vector<std::string> namespaces;  // with no namespace_selector, none: the pod's own
  LabelSelector namespace_selector;
  std::string topology_key;
  std::vector<std::string> match_label_keys;
  std::vector<std::string> mismatch_label_keys;
  bool operator==(const PodAffinityTerm&) const = default;
};

struct WeightedPodAffinityTerm {
  std::int32_t weight = 1;  // 1..100
  PodAffinityTerm term;
  bool operator==(const WeightedPodAffinityTerm&) const = default;
};

struct PodAffinity {
  std::vector<PodAffinityTerm> required;  // all of them
  std::vector<WeightedPodAffinityTerm> preferred;
  bool operator==(const PodAffinity&) const = default;
};

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

struct HostPort {
  std::string ip;         // "0.0.0.0" when none is given
  std::string protocol;   // TCP, UDP or SCTP
  std::int32_t port = 0;  // 1..65535
  auto operator<=>(const HostPort&) const = default;
};

struct KubernetesPod {
  std::string name;  // namespace/name
  std::string uid;
  std::string namespace_name;
  std::map<std::string, std::string> labels;
  std::vector<OwnerReference> owners;
  std::string node_name;       // "" while it is pending
  std::string nominated_node;  // status.nominatedNodeName
  std::string scheduler_name;  // "" in what no API server has filled in
  std::int32_t priority = 0;
  bool preempts = true;              // preemptionPolicy is not Never
  std::int64_t creation_time_s = 0;  // since 1970, UTC; 0: not known
  std::int64_t start_time_s = 0;     // status.startTime, likewise
  bool terminating = false;          // has a deletionTimestamp
  std::vector<std::string> gates;    // schedulingGates that are still there
  Amounts request;                   // what is subtracted from the node
  Amounts scored_request;            // the same, where a container that names no cpu or memory
                                     // counts defaults
  std::map<std::string, std::string> node_selector;
  bool has_required = false;  // node affinity that must hold; one of `required`
  std::vector<SelectorTerm> required;
  std::vector<PreferredTerm> preferred;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> ports;
  std::vector<SpreadConstraint> spread;
  PodAffinity affinity;
  PodAffinity anti_affinity;
  std::vector<std::string> images;       // of all containers and init containers, one entry each
  std::uint32_t containers = 0;          // their number
  std::vector<std::string> unsupported;  // terms that this build does not evaluate, a sentence each
  bool operator==(const KubernetesPod&) const = default;
};

// Whose selector says which pods belong together: Service, ReplicationController, ReplicaSet or
// StatefulSet.
struct KubernetesOwner {
  std::string kind;
  std::string namespace_name;
  std::string name;
  LabelSelector selector;
  bool operator==(const KubernetesOwner&) const = default;
};

struct KubernetesNamespace {
  std::string name;
  std::map<std::string, std::string> labels;
};

struct KubernetesCluster {
  std::vector<KubernetesNode> nodes;  // in the order of the document
  std::vector<KubernetesPod> pods;
  std::vector<std::string> ended;  // "namespace/name" of pods that are left out
  std::vector<KubernetesNamespace> namespaces;
  std::vector<KubernetesOwner> owners;
  std::vector<std::string> warnings;  // for example a pod on a node that is not listed
};

inline constexpr std::uint64_t kMaxKubernetesBytes = std::uint64_t{1} << 30;
inline constexpr int kMaxKubernetesDepth = 64;

// not_found, io_error; invalid_argument names the file, the object and the field (or, when the text
// is no JSON, line and column).
Result<KubernetesCluster> read_kubernetes(const std::string& path);
Result<KubernetesCluster> parse_kubernetes(std::string_view bytes, const std::string& name);

}  // namespace penstock
#endif
