#include "penstock/serve/extender_protocol.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "penstock/sched/json_field.h"
#include "penstock/sched/kubernetes_objects.h"
#include "penstock/serve/watch.h"

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostViolations = 1 << 20;

// A pod that comes in a request is to be placed, whatever it says about where it is.
Status read_pod(const JsonField& field, KubernetesPod* pod) {
  if (!field.present()) return field.wrong("a Pod");
  PENSTOCK_ASSIGN(*pod, read_kubernetes_pod(field));
  pod->node_name.clear();
  return {};
}

Result<std::string> uid_of(const JsonField& pod) {
  // A MetaPod has UID at its top; a Pod has it in its metadata.
  const JsonField metadata = pod.member("metadata");
  const JsonField uid = metadata.present() ? metadata.member("uid") : pod.member("UID");
  PENSTOCK_ASSIGN(std::string text, uid.text());
  if (text.empty()) return uid.wrong("a uid");
  return text;
}

Result<std::vector<PreemptionArgs::Candidate>> read_candidates(const JsonField& map) {
  std::vector<PreemptionArgs::Candidate> candidates;
  const Status status =
      map.each_member([&candidates](const std::string& node, const JsonField& item) -> Status {
        PENSTOCK_TRY(item.expect_object());
        PreemptionArgs::Candidate& candidate = candidates.emplace_back();
        candidate.node = node;
        PENSTOCK_ASSIGN(candidate.violations,
                        item.member("NumPDBViolations").integer(0, kMostViolations));
        const JsonField pods = item.member("Pods");
        return pods.each([&candidate](const JsonField& pod) -> Status {
          PENSTOCK_ASSIGN(std::string uid, uid_of(pod));
          candidate.victims.push_back(std::move(uid));
          return {};
        });
      });
  if (!status.ok()) return status;
  return candidates;
}

}  // namespace

Result<ExtenderArgs> parse_extender_args(std::string_view body) {
  PENSTOCK_ASSIGN(json document, parse_json(body, "ExtenderArgs", kMaxKubernetesDepth));
  ExtenderArgs args;
  const JsonField root(document, "ExtenderArgs");
  if (!document.is_object()) return root.wrong("an object with Pod and Nodes or NodeNames");
  PENSTOCK_TRY(read_pod(root.member("Pod"), &args.pod));
  const JsonField names = root.member("NodeNames"), nodes = root.member("Nodes");
  if (names.present()) {
    args.by_name = true;
    PENSTOCK_ASSIGN(args.names, read_list<std::string>(names, std::mem_fn(&JsonField::text)));
    return args;
  }
  if (!nodes.present()) {
    return error(Code::invalid_argument,
                 "ExtenderArgs: found neither Nodes nor NodeNames, expected one of them");
  }
  PENSTOCK_TRY(nodes.expect_object());
  const JsonField items = nodes.member("items");
  PENSTOCK_TRY(items.each([&args](const JsonField& item) -> Status {
    if (!item.present() || !item.json().is_object()) return item.wrong("a Node");
    const std::string name = object_key(item.json());
    if (name.empty()) return item.wrong("a Node with metadata.name");
    args.names.push_back(name);
    return {};
  }));
  if (items.present()) {
    for (json& node : document["Nodes"]["items"]) args.nodes.push_back(std::move(node));
  }
  return args;
}

std::vector<std::int64_t> extender_scores(const std::vector<std::int64_t>& totals) {
  std::vector<std::int64_t> scores(totals.size(), 10);
  if (totals.empty()) return scores;
  const auto [least, most] = std::minmax_element(totals.begin(), totals.end());
  const std::int64_t range = *most - *least;
  if (range == 0) return scores;
  for (std::size_t i = 0; i < totals.size(); ++i) scores[i] = (totals[i] - *least) * 10 / range;
  return scores;
}

Result<BindingArgs> parse_binding_args(std::string_view body) {
  PENSTOCK_ASSIGN(const json document,
                  parse_json(body, "ExtenderBindingArgs", kMaxKubernetesDepth));
  const JsonField root(document, "ExtenderBindingArgs");
  if (!document.is_object()) return root.wrong("an object with PodName, PodNamespace and Node");
  const auto name_at = [&root](const char* key, bool required) -> Result<std::string> {
    const JsonField field = root.member(key);
    PENSTOCK_ASSIGN(std::string text, field.text());
    if (text.empty() && required) return field.wrong("a text that is not empty");
    if (text.find('/') != std::string::npos) return field.wrong("a name without '/'");
    return text;
  };
  BindingArgs args;
  PENSTOCK_ASSIGN(const std::string space, name_at("PodNamespace", true));
  PENSTOCK_ASSIGN(const std::string name, name_at("PodName", true));
  PENSTOCK_ASSIGN(args.uid, name_at("PodUID", false));
  PENSTOCK_ASSIGN(args.node, name_at("Node", true));
  args.key = space + "/" + name;
  return args;
}

Result<PreemptionArgs> parse_preemption_args(std::string_view body) {
  PENSTOCK_ASSIGN(const json document,
                  parse_json(body, "ExtenderPreemptionArgs", kMaxKubernetesDepth));
  PreemptionArgs args;
  const JsonField root(document, "ExtenderPreemptionArgs");
  if (!document.is_object()) return root.wrong("an object with Pod and victims");
  PENSTOCK_TRY(read_pod(root.member("Pod"), &args.pod));
  const JsonField meta = root.member("NodeNameToMetaVictims"),
                  whole = root.member("NodeNameToVictims");
  if (!meta.present() && !whole.present()) {
    return error(Code::invalid_argument,
                 "ExtenderPreemptionArgs: found neither NodeNameToVictims nor "
                 "NodeNameToMetaVictims, expected one of them");
  }
  PENSTOCK_ASSIGN(args.candidates, read_candidates(meta.present() ? meta : whole));
  return args;
}

}  // namespace penstock
