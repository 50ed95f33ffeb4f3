/* A Kubernetes cluster that lives: objects come and go, and decisions are kube-scheduler's (v1.34),
 * with every node considered. The C interface; its rules are those of penstock.h.
 *
 * Objects are JSON texts in the form of the Kubernetes API v1: a Node, Pod, Namespace, Service,
 * ReplicationController, ReplicaSet or StatefulSet, or a List of them, as a watch or
 * `kubectl get -o json` gives them. Each call states what is now so, and may be repeated. What is
 * wrong is refused with the field's path, before anything of that object is taken.
 */
#ifndef PENSTOCK_CLUSTER_H_
#define PENSTOCK_CLUSTER_H_

#include "penstock/penstock.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct penstock_cluster_config {
  size_t size;                /* sizeof(penstock_cluster_config) */
  const char* configuration;  /* path of a KubeSchedulerConfiguration (YAML or JSON); null:
                                 kube-scheduler's defaults */
  const char* scheduler_name; /* the profile of that name; null: the first */
  const char* engine;         /* null: PENSTOCK_ENGINE, or the best */
  uint32_t capacity;          /* nodes to make room for; grows by itself; 0: 1024 */
  uint32_t reserved;          /* 0 */
} penstock_cluster_config;
#define PENSTOCK_CLUSTER_CONFIG_INIT \
  { sizeof(penstock_cluster_config), 0, 0, 0, 0, 0 }

/* An empty cluster. `config` may be null. penstock_cluster_destroy ends it. */
PENSTOCK_API enum penstock_status penstock_cluster_create(const penstock_cluster_config* config,
                                                          penstock_cluster** cluster);

/* Adds the objects, or replaces those of the same name. A pod with spec.nodeName occupies that
 * node; one that has ended (Succeeded, Failed) occupies nothing any more; one without a node is
 * pending, and may be named to penstock_cluster_place. A node's pods stay with it when it changes,
 * and occupy it again when it comes back. `bytes` of json, or 0 for a NUL-terminated text. */
PENSTOCK_API enum penstock_status penstock_cluster_put(penstock_cluster* cluster, const char* json,
                                                       size_t bytes);
/* `kind` as above; `name` of a Node or Namespace, "namespace/name" of the others. Something that
 * is not there is no error. */
PENSTOCK_API enum penstock_status penstock_cluster_remove(penstock_cluster* cluster,
                                                          const char* kind, const char* name);

/* Where would this pod (a JSON text) go? With commit 1 it is there from now on, as if it had been
 * put with that node. A pod that fits nowhere is no error: decision->node is "" and
 * penstock_cluster_why says why. PENSTOCK_ALREADY_EXISTS: a pod of that name occupies a node. */
PENSTOCK_API enum penstock_status penstock_cluster_decide(penstock_cluster* cluster,
                                                          const char* pod, size_t bytes, int commit,
                                                          penstock_decision* decision);
/* Why the last decision found no node, in kube-scheduler's words ("0/3 nodes are available: ..."),
 * or "". Valid until the next call on the cluster. */
PENSTOCK_API const char* penstock_cluster_why(const penstock_cluster* cluster);

/* Every filter's verdict and every score of every node for this pod, with the numbers that a
 * decision uses, as the JSON of `penstock explain --json`. Valid until the next call on the
 * cluster. */
PENSTOCK_API enum penstock_status penstock_cluster_explain(penstock_cluster* cluster,
                                                           const char* pod, size_t bytes,
                                                           const char** json);

#ifdef __cplusplus
}
#endif
#endif
