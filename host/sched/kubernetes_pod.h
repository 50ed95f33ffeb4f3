// The pod of a Kubernetes document; shared by the files that read one.
#ifndef PENSTOCK_SCHED_KUBERNETES_POD_H_
#define PENSTOCK_SCHED_KUBERNETES_POD_H_

#include "penstock/sched/json_field.h"
#include "penstock/sched/kubernetes.h"

namespace penstock {

// An object of quantities, as Amounts has them. Absent: none.
Result<Amounts> read_amounts(const JsonField& field);
// invalid_argument names the field that is wrong.
Result<KubernetesPod> read_kubernetes_pod(const JsonField& object);

}  // namespace penstock
#endif
