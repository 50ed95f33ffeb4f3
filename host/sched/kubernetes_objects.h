// Single objects of the Kubernetes API v1, for who meets them one by one (a watch, an extender's
// request) and for the reader of whole documents. Errors are invalid_argument and name the field.
#ifndef PENSTOCK_SCHED_KUBERNETES_OBJECTS_H_
#define PENSTOCK_SCHED_KUBERNETES_OBJECTS_H_

#include <string>

#include "penstock/sched/json_field.h"
#include "penstock/sched/kubernetes.h"
#include "penstock/sched/kubernetes_pod.h"

namespace penstock {

// A node without status.allocatable has an empty one.
Result<KubernetesNode> read_kubernetes_node(const JsonField& object);
Result<KubernetesNamespace> read_kubernetes_namespace(const JsonField& object);
// Whether an object of this kind is one that read_kubernetes_owner reads.
bool is_owner_kind(const std::string& kind);
// `kind` is that of the object, which need not repeat it.
Result<KubernetesOwner> read_kubernetes_owner(const JsonField& object, const std::string& kind);

// ---- parts ----
Result<LabelSelector> read_label_selector(const JsonField& field);
// metadata.{namespace,name}: "default" where no namespace is given.
Result<std::string> read_namespace_name(const JsonField& metadata);
// RFC 3339 as the API writes it ("2026-01-31T12:00:00Z"), in seconds since 1970; 0 when absent.
Result<std::int64_t> read_time(const JsonField& field);
// metadata.labels and ownerReferences, topologySpreadConstraints, pod affinity, priority and the
// like: what read_kubernetes_pod puts beside requests and node affinity.
Status read_pod_relations(const JsonField& object, KubernetesPod* pod);

}  // namespace penstock
#endif
