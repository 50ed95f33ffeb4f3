#include "penstock/sched/kubernetes_pod.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "penstock/sched/kubernetes_objects.h"
#include "penstock/sched/kubernetes_request.h"

namespace penstock {
namespace {

constexpr std::array<std::string_view, 6> kOperators = {"In",           "NotIn", "Exists",
                                                        "DoesNotExist", "Gt",    "Lt"};

Result<Toleration> read_toleration(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  Toleration toleration;
  PENSTOCK_ASSIGN(toleration.key, item.member("key").text());
  PENSTOCK_ASSIGN(toleration.operation, item.member("operator").text());
  PENSTOCK_ASSIGN(toleration.value, item.member("value").text());
  PENSTOCK_ASSIGN(toleration.effect, item.member("effect").text());
  if (toleration.operation.empty()) toleration.operation = "Equal";
  if (toleration.operation != "Equal" && toleration.operation != "Exists" &&
      toleration.operation != "Gt" && toleration.operation != "Lt") {
    return item.member("operator").wrong("Equal or Exists");
  }
  return toleration;
}

Result<Requirement> read_requirement(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  Requirement requirement;
  PENSTOCK_ASSIGN(requirement.key, item.member("key").text());
  PENSTOCK_ASSIGN(requirement.operation, item.member("operator").text());
  if (std::find(kOperators.begin(), kOperators.end(), requirement.operation) == kOperators.end()) {
    return item.member("operator").wrong("In, NotIn, Exists, DoesNotExist, Gt or Lt");
  }
  PENSTOCK_ASSIGN(requirement.values,
                  read_list<std::string>(item.member("values"), std::mem_fn(&JsonField::text)));
  return requirement;
}

Result<SelectorTerm> read_term(const JsonField& field) {
  SelectorTerm term;
  PENSTOCK_TRY(field.expect_object());
  PENSTOCK_ASSIGN(term.labels,
                  read_list<Requirement>(field.member("matchExpressions"), read_requirement));
  PENSTOCK_ASSIGN(term.fields,
                  read_list<Requirement>(field.member("matchFields"), read_requirement));
  return term;
}

Result<PreferredTerm> read_preferred(const JsonField& item) {
  PENSTOCK_TRY(item.expect_object());
  PreferredTerm term;
  const JsonField weight = item.member("weight");
  if (!weight.present()) return weight.wrong("a whole number from 1 to 100");
  PENSTOCK_ASSIGN(const std::int64_t number, weight.integer(1, 100));
  term.weight = static_cast<std::int32_t>(number);
  PENSTOCK_ASSIGN(term.term, read_term(item.member("preference")));
  return term;
}

Status read_node_affinity(const JsonField& affinity, KubernetesPod* pod) {
  PENSTOCK_TRY(affinity.expect_object());
  const JsonField required = affinity.member("requiredDuringSchedulingIgnoredDuringExecution");
  PENSTOCK_TRY(required.expect_object());
  pod->has_required = required.present();
  PENSTOCK_ASSIGN(pod->required,
                  read_list<SelectorTerm>(required.member("nodeSelectorTerms"), read_term));
  const JsonField preferred = affinity.member("preferredDuringSchedulingIgnoredDuringExecution");
  PENSTOCK_ASSIGN(pod->preferred, read_list<PreferredTerm>(preferred, read_preferred));
  return {};
}

Status read_ports(const JsonField& container, bool host_network, KubernetesPod* pod) {
  return container.member("ports").each([=](const JsonField& item) -> Status {
    PENSTOCK_TRY(item.expect_object());
    HostPort port;
    PENSTOCK_ASSIGN(std::int64_t number, item.member("hostPort").integer(0, 65535));
    // On the host's network a container's port is the host's.
    if (number == 0 && host_network) {
      PENSTOCK_ASSIGN(number, item.member("containerPort").integer(0, 65535));
    }
    if (number == 0) return {};
    port.port = static_cast<std::int32_t>(number);
    PENSTOCK_ASSIGN(port.ip, item.member("hostIP").text());
    if (port.ip.empty()) port.ip = "0.0.0.0";
    PENSTOCK_ASSIGN(port.protocol, item.member("protocol").text());
    if (port.protocol.empty()) port.protocol = "TCP";
    if (port.protocol != "TCP" && port.protocol != "UDP" && port.protocol != "SCTP") {
      return item.member("protocol").wrong("TCP, UDP or SCTP");
    }
    if (std::find(pod->ports.begin(), pod->ports.end(), port) == pod->ports.end()) {
      pod->ports.push_back(std::move(port));
    }
    return {};
  });
}

// What runs now, while a resize is under way: by container.
struct Running {
  Amounts request;
  Amounts allocated;
};

Status read_running(const JsonField& statuses, std::map<std::string, Running>* out) {
  return statuses.each([out](const JsonField& item) -> Status {
    PENSTOCK_TRY(item.expect_object());
    const JsonField resources = item.member("resources");
    if (!resources.present()) return {};
    PENSTOCK_TRY(resources.expect_object());
    PENSTOCK_ASSIGN(const std::string name, item.member("name").text());
    Running& running = (*out)[name];
    PENSTOCK_ASSIGN(running.request, read_amounts(resources.member("requests")));
    PENSTOCK_ASSIGN(running.allocated, read_amounts(item.member("allocatedResources")));
    return {};
  });
}

void raise(Amounts* to, const Amounts& amounts) {
  for (const auto& [name, amount] : amounts) {
    std::int64_t& most = (*to)[name];
    most = std::max(most, amount);
  }
}

Result<bool> is_infeasible_resize(const JsonField& condition) {
  PENSTOCK_TRY(condition.expect_object());
  PENSTOCK_ASSIGN(const std::string type, condition.member("type").text());
  PENSTOCK_ASSIGN(const std::string reason, condition.member("reason").text());
  return type == "PodResizePending" && reason == "Infeasible";
}

// A resize that the node cannot grant leaves the pod what it has.
Result<bool> resize_is_infeasible(const JsonField& status) {
  PENSTOCK_ASSIGN(const std::vector<bool> infeasible,
                  read_list<bool>(status.member("conditions"), is_infeasible_resize));
  return std::find(infeasible.begin(), infeasible.end(), true) != infeasible.end();
}

// A limit without a request is the request, as the API server fills it in.
Result<Amounts> read_request(const JsonField& owner) {
  const JsonField resources = owner.member("resources");
  PENSTOCK_TRY(resources.expect_object());
  PENSTOCK_ASSIGN(Amounts request, read_amounts(resources.member("requests")));
  PENSTOCK_ASSIGN(Amounts limits, read_amounts(resources.member("limits")));
  request.merge(limits);
  return request;
}

// What the containers of a pod have in common.
struct PodContext {
  bool host_network = false;
  bool infeasible = false;
  std::map<std::string, Running> running;
};

Result<ContainerRequest> read_container(const JsonField& item, bool init, const PodContext& context,
                                        KubernetesPod* pod) {
  PENSTOCK_TRY(item.expect_object());
  ContainerRequest container;
  PENSTOCK_ASSIGN(container.request, read_request(item));
  PENSTOCK_ASSIGN(const std::string policy, item.member("restartPolicy").text());
  container.restartable = init && policy == "Always";
  PENSTOCK_ASSIGN(const std::string name, item.member("name").text());
  if (const auto now = context.running.find(name); now != context.running.end()) {
    if (context.infeasible) container.request.clear();
    raise(&container.request, now->second.request);
    raise(&container.request, now->second.allocated);
  }
  if (!init || container.restartable) {
    PENSTOCK_TRY(read_ports(item, context.host_network, pod));
  }
  return container;
}

Status read_requests(const JsonField& object, KubernetesPod* pod) {
  const JsonField spec = object.member("spec"), status = object.member("status");
  PodContext context;
  PENSTOCK_TRY(read_running(status.member("containerStatuses"), &context.running));
  PENSTOCK_TRY(read_running(status.member("initContainerStatuses"), &context.running));
  PENSTOCK_ASSIGN(context.infeasible, resize_is_infeasible(status));
  PENSTOCK_ASSIGN(context.host_network, spec.member("hostNetwork").boolean());
  const auto read_all = [&](const char* list, bool init) {
    return read_list<ContainerRequest>(spec.member(list), [&](const JsonField& item) {
      return read_container(item, init, context, pod);
    });
  };
  PodRequest request;
  PENSTOCK_ASSIGN(request.containers, read_all("containers", false));
  PENSTOCK_ASSIGN(request.init_containers, read_all("initContainers", true));
  const JsonField resources = spec.member("resources");
  PENSTOCK_TRY(resources.expect_object());
  PENSTOCK_ASSIGN(request.pod_level, read_amounts(resources.member("requests")));
  PENSTOCK_ASSIGN(request.overhead, read_amounts(spec.member("overhead")));
  auto total = total_request(request, false), scored = total_request(request, true);
  if (!total.ok()) return total.status().with_context(object.where());
  if (!scored.ok()) return scored.status().with_context(object.where());
  pod->request = std::move(total).value();
  pod->scored_request = std::move(scored).value();
  return {};
}

Result<std::size_t> count_items(const JsonField& field) {
  if (!field.present()) return std::size_t{0};
  if (!field.json().is_array()) return field.wrong("an array");
  return field.json().size();
}

Result<std::size_t> count_persistent_volumes(const JsonField& volumes) {
  std::size_t n = 0;
  const Status status = volumes.each([&n](const JsonField& item) -> Status {
    if (item.member("persistentVolumeClaim").present() || item.member("ephemeral").present()) ++n;
    return {};
  });
  if (!status.ok()) return status;
  return n;
}

// Terms that have a part in kube-scheduler's decision and none in ours.
Status find_unsupported(const JsonField& spec, KubernetesPod* pod) {
  const auto note = [pod](std::size_t n, const char* what) {
    if (n == 0) return;
    pod->unsupported.push_back(
        fmt::format("unsupported: {} ({}) of the pod: not evaluated", what, n));
  };
  PENSTOCK_ASSIGN(const std::size_t claims, count_items(spec.member("resourceClaims")));
  note(claims, "resourceClaims");
  PENSTOCK_ASSIGN(const std::size_t volumes, count_persistent_volumes(spec.member("volumes")));
  note(volumes, "persistent volumes");
  return {};
}

}  // namespace

Result<KubernetesPod> read_kubernetes_pod(const JsonField& object) {
  KubernetesPod pod;
  const JsonField metadata = object.member("metadata"), spec = object.member("spec"),
                  status = object.member("status");
  for (const JsonField* part : {&metadata, &spec, &status}) PENSTOCK_TRY(part->expect_object());
  const JsonField name_field = metadata.member("name");
  PENSTOCK_ASSIGN(const std::string name, name_field.text());
  if (name.empty()) return name_field.wrong("a name");
  PENSTOCK_TRY(read_pod_relations(object, &pod));
  pod.name = pod.namespace_name + "/" + name;
  PENSTOCK_ASSIGN(pod.node_name, spec.member("nodeName").text());
  PENSTOCK_TRY(read_requests(object, &pod));
  PENSTOCK_ASSIGN(pod.node_selector, spec.member("nodeSelector").texts());
  const JsonField affinity = spec.member("affinity");
  PENSTOCK_TRY(affinity.expect_object());
  PENSTOCK_TRY(read_node_affinity(affinity.member("nodeAffinity"), &pod));
  PENSTOCK_ASSIGN(pod.tolerations,
                  read_list<Toleration>(spec.member("tolerations"), read_toleration));
  PENSTOCK_TRY(find_unsupported(spec, &pod));
  return pod;
}

}  // namespace penstock
