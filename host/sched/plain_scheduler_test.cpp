#include "penstock/sched/plain_scheduler_test.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <set>

namespace penstock::plain {
namespace {

bool has(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool satisfies(const Requirement& r, const Labels& labels) {
  const bool there = labels.count(r.key) > 0;
  const std::string value = there ? labels.at(r.key) : "";
  if (r.operation == "In") return there && has(r.values, value);
  if (r.operation == "NotIn") return !there || !has(r.values, value);
  if (r.operation == "Exists") return there;
  if (r.operation == "DoesNotExist") return !there;
  if (!there) return false;
  const long long mine = std::stoll(value), bound = std::stoll(r.values[0]);
  return r.operation == "Gt" ? mine > bound : mine < bound;
}

bool picks(const LabelSelector& s, const Labels& labels) {
  if (!s.present) return false;
  for (const auto& [key, value] : s.labels) {
    if (labels.count(key) == 0 || labels.at(key) != value) return false;
  }
  for (const Requirement& r : s.expressions) {
    if (!satisfies(r, labels)) return false;
  }
  return true;
}

bool is_empty(const LabelSelector& s) { return s.labels.empty() && s.expressions.empty(); }

// ---- taints, node affinity, ports, resources ----

bool tolerated(const KubernetesPod& pod, const Taint& taint) {
  for (const Toleration& t : pod.tolerations) {
    if (!t.effect.empty() && t.effect != taint.effect) continue;
    if (t.operation == "Exists" && (t.key.empty() || t.key == taint.key)) return true;
    if (t.operation == "Equal" && t.key == taint.key && t.value == taint.value) return true;
  }
  return false;
}

bool has_hard_taint(const KubernetesPod& pod, const KubernetesNode& node) {
  for (const Taint& taint : node.facts.taints) {
    if (taint.effect != "PreferNoSchedule" && !tolerated(pod, taint)) return true;
  }
  return false;
}

bool term_matches(const SelectorTerm& term, const KubernetesNode& node) {
  if (term.labels.empty() && term.fields.empty()) return false;
  for (const Requirement& r : term.labels) {
    if (!satisfies(r, node.facts.labels)) return false;
  }
  return true;
}

bool node_affinity(const KubernetesPod& pod, const KubernetesNode& node) {
  for (const auto& [key, value] : pod.node_selector) {
    if (node.facts.labels.count(key) == 0 || node.facts.labels.at(key) != value) return false;
  }
  if (!pod.has_required) return true;
  for (const SelectorTerm& term : pod.required) {
    if (term_matches(term, node)) return true;
  }
  return false;
}

std::vector<const KubernetesPod*> on(const World& world, const KubernetesNode& node) {
  std::vector<const KubernetesPod*> out;
  for (const auto& [key, pod] : world.pods) {
    if (pod.node_name == node.facts.name) out.push_back(&pod);
  }
  return out;
}

bool ports_free(const World& world, const KubernetesPod& pod, const KubernetesNode& node) {
  for (const KubernetesPod* other : on(world, node)) {
    for (const HostPort& a : pod.ports) {
      for (const HostPort& b : other->ports) {
        const bool every = a.ip == "0.0.0.0" || b.ip == "0.0.0.0";
        if (a.port == b.port && a.protocol == b.protocol && (every || a.ip == b.ip)) return false;
      }
    }
  }
  return true;
}

std::int64_t amount(const Amounts& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

std::int64_t used(const World& world, const KubernetesNode& node, const std::string& name,
                  bool scored) {
  std::int64_t sum = 0;
  for (const KubernetesPod* pod : on(world, node)) {
    sum += amount(scored ? pod->scored_request : pod->request, name);
  }
  return sum;
}

bool fits(const World& world, const KubernetesPod& pod, const KubernetesNode& node) {
  const auto there = static_cast<std::int64_t>(on(world, node).size());
  if (there + 1 > amount(node.allocatable, "pods")) return false;
  for (const auto& [name, asked] : pod.request) {
    if (asked > 0 && asked > amount(node.allocatable, name) - used(world, node, name, false)) {
      return false;
    }
  }
  return true;
}

// ---- spread ----

std::vector<SpreadConstraint> constraints_of(const World& world, const KubernetesPod& pod,
                                             bool hard, bool* all_labels) {
  std::vector<SpreadConstraint> out;
  *all_labels = !pod.spread.empty();
  for (SpreadConstraint c : pod.spread) {
    if (c.required != hard) continue;
    for (const std::string& key : c.match_label_keys) {
      if (pod.labels.count(key) > 0) {
        c.selector.expressions.push_back({key, "In", {pod.labels.at(key)}});
      }
    }
    out.push_back(c);
  }
  if (!pod.spread.empty() || hard) return out;
  LabelSelector together;
  together.present = true;
  for (const KubernetesOwner& owner : world.owners) {
    if (owner.kind == "Service" && owner.namespace_name == pod.namespace_name &&
        picks(owner.selector, pod.labels)) {
      together.labels.insert(owner.selector.labels.begin(), owner.selector.labels.end());
    }
  }
  if (is_empty(together)) return out;
  SpreadConstraint host, zone;
  host.topology_key = "kubernetes.io/hostname";
  host.max_skew = 3;
  zone.topology_key = "topology.kubernetes.io/zone";
  zone.max_skew = 5;
  host.selector = zone.selector = together;
  return {host, zone};
}

std::int64_t matching(const World& world, const KubernetesPod& pod, const SpreadConstraint& c,
                      const KubernetesNode& node) {
  std::int64_t n = 0;
  if (c.selector.present && is_empty(c.selector)) return 0;
  for (const KubernetesPod* other : on(world, node)) {
    if (other->namespace_name == pod.namespace_name && !other->terminating &&
        picks(c.selector, other->labels)) {
      ++n;
    }
  }
  return n;
}

bool has_all(const std::vector<SpreadConstraint>& all, const KubernetesNode& node) {
  for (const SpreadConstraint& c : all) {
    if (node.facts.labels.count(c.topology_key) == 0) return false;
  }
  return true;
}

bool included(const KubernetesPod& pod, const SpreadConstraint& c, const KubernetesNode& node) {
  if (c.honor_node_affinity && !node_affinity(pod, node)) return false;
  return !c.honor_node_taints || !has_hard_taint(pod, node);
}

bool spreads(const World& world, const KubernetesPod& pod, const KubernetesNode& node) {
  bool all_labels = true;
  const auto all = constraints_of(world, pod, true, &all_labels);
  for (const SpreadConstraint& c : all) {
    if (node.facts.labels.count(c.topology_key) == 0) return false;
    std::map<std::string, std::int64_t> counts;
    for (const KubernetesNode& other : world.nodes) {
      if (!has_all(all, other) || !included(pod, c, other)) continue;
      counts[other.facts.labels.at(c.topology_key)] += matching(world, pod, c, other);
    }
    std::int64_t least = INT_MAX;
    for (const auto& [value, n] : counts) least = std::min(least, n);
    if (static_cast<std::int64_t>(counts.size()) < c.min_domains) least = 0;
    const auto here = counts.find(node.facts.labels.at(c.topology_key));
    const std::int64_t self = picks(c.selector, pod.labels) ? 1 : 0;
    if ((here == counts.end() ? 0 : here->second) + self - least > c.max_skew) return false;
  }
  return true;
}

std::vector<std::int64_t> spread_scores(const World& world, const KubernetesPod& pod,
                                        const std::vector<const KubernetesNode*>& nodes) {
  bool all_labels = true;
  const auto all = constraints_of(world, pod, false, &all_labels);
  std::vector<std::int64_t> out(nodes.size());
  if (all.empty()) return out;
  std::vector<bool> ignored;
  for (const KubernetesNode* node : nodes) ignored.push_back(all_labels && !has_all(all, *node));
  std::vector<double> raw(nodes.size());
  for (const SpreadConstraint& c : all) {
    const bool by_host = c.topology_key == "kubernetes.io/hostname";
    std::set<std::string> values;
    std::int64_t candidates = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (ignored[i]) continue;
      ++candidates;
      const auto label = nodes[i]->facts.labels.find(c.topology_key);
      values.insert(label == nodes[i]->facts.labels.end() ? "\n" : label->second);
    }
    const double size =
        by_host ? static_cast<double>(candidates) : static_cast<double>(values.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (ignored[i] || nodes[i]->facts.labels.count(c.topology_key) == 0) continue;
      std::int64_t count = 0;
      if (by_host) {
        count = matching(world, pod, c, *nodes[i]);
      } else {
        for (const KubernetesNode& other : world.nodes) {
          const auto label = other.facts.labels.find(c.topology_key);
          if (label == other.facts.labels.end() ||
              label->second != nodes[i]->facts.labels.at(c.topology_key)) {
            continue;
          }
          if ((all_labels && !has_all(all, other)) || !included(pod, c, other)) continue;
          count += matching(world, pod, c, other);
        }
      }
      raw[i] += static_cast<double>(count) * std::log(size + 2) + (c.max_skew - 1);
    }
  }
  std::int64_t most = 0, least = LLONG_MAX;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    out[i] = std::llround(raw[i]);
    if (ignored[i]) continue;
    most = std::max(most, out[i]);
    least = std::min(least, out[i]);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    out[i] = ignored[i] ? 0 : most == 0 ? 100 : 100 * (most + least - out[i]) / most;
  }
  return out;
}

// ---- pods and pods ----

bool picks(const World& world, const KubernetesPod& owner, const PodAffinityTerm& term,
           const KubernetesPod& other, bool other_is_incoming) {
  bool space = has(term.namespaces, other.namespace_name);
  if (term.namespaces.empty() && !term.namespace_selector.present) {
    space = owner.namespace_name == other.namespace_name;
  }
  if (!space && term.namespace_selector.present) {
    const auto known = world.namespaces.find(other.namespace_name);
    if (is_empty(term.namespace_selector)) {
      space = true;
    } else if (known != world.namespaces.end()) {
      space = picks(term.namespace_selector, known->second);
    } else if (other_is_incoming) {
      space = picks(term.namespace_selector, Labels{});
    }
  }
  if (!space) return false;
  LabelSelector s = term.selector;
  for (const std::string& key : term.match_label_keys) {
    if (owner.labels.count(key) > 0) s.expressions.push_back({key, "In", {owner.labels.at(key)}});
  }
  for (const std::string& key : term.mismatch_label_keys) {
    if (owner.labels.count(key) > 0) {
      s.expressions.push_back({key, "NotIn", {owner.labels.at(key)}});
    }
  }
  return picks(s, other.labels);
}

bool together(const KubernetesNode& a, const KubernetesNode& b, const std::string& key) {
  return a.facts.labels.count(key) > 0 && b.facts.labels.count(key) > 0 &&
         a.facts.labels.at(key) == b.facts.labels.at(key);
}

bool picked_by_all(const World& world, const KubernetesPod& pod, const KubernetesPod& other) {
  for (const PodAffinityTerm& term : pod.affinity.required) {
    if (!picks(world, pod, term, other, false)) return false;
  }
  return true;
}

bool affinity_holds(const World& world, const KubernetesPod& pod, const KubernetesNode& node) {
  if (pod.affinity.required.empty()) return true;
  bool anywhere = false, here = true;
  for (const PodAffinityTerm& term : pod.affinity.required) {
    if (node.facts.labels.count(term.topology_key) == 0) return false;
    bool found = false;
    for (const auto& [key, other] : world.pods) {
      const KubernetesNode* its = world.find(other.node_name);
      if (its == nullptr || !picked_by_all(world, pod, other)) continue;
      anywhere = anywhere || its->facts.labels.count(term.topology_key) > 0;
      found = found || together(node, *its, term.topology_key);
    }
    here = here && found;
  }
  return here || (!anywhere && picked_by_all(world, pod, pod));
}

bool pods_agree(const World& world, const KubernetesPod& pod, const KubernetesNode& node) {
  if (!affinity_holds(world, pod, node)) return false;
  for (const auto& [key, other] : world.pods) {
    const KubernetesNode* its = world.find(other.node_name);
    if (its == nullptr) continue;
    for (const PodAffinityTerm& term : pod.anti_affinity.required) {
      if (together(node, *its, term.topology_key) && picks(world, pod, term, other, false)) {
        return false;
      }
    }
    for (const PodAffinityTerm& term : other.anti_affinity.required) {
      if (together(node, *its, term.topology_key) && picks(world, other, term, pod, true)) {
        return false;
      }
    }
  }
  return true;
}

std::int64_t pod_affinity_raw(const World& world, const KubernetesPod& pod,
                              const KubernetesNode& node) {
  std::int64_t sum = 0;
  for (const auto& [key, other] : world.pods) {
    const KubernetesNode* its = world.find(other.node_name);
    if (its == nullptr) continue;
    const auto add = [&](const KubernetesPod& owner, const PodAffinityTerm& term,
                         const KubernetesPod& about, bool incoming, std::int64_t weight) {
      if (together(node, *its, term.topology_key) && picks(world, owner, term, about, incoming)) {
        sum += weight;
      }
    };
    for (const auto& w : pod.affinity.preferred) add(pod, w.term, other, false, w.weight);
    for (const auto& w : pod.anti_affinity.preferred) add(pod, w.term, other, false, -w.weight);
    for (const auto& w : other.affinity.preferred) add(other, w.term, pod, true, w.weight);
    for (const auto& w : other.anti_affinity.preferred) add(other, w.term, pod, true, -w.weight);
    for (const auto& term : other.affinity.required) {
      add(other, term, pod, true, world.hard_pod_affinity_weight);
    }
  }
  return sum;
}

// ---- scores by node ----

std::int64_t least_allocated(const World& world, const KubernetesPod& pod,
                             const KubernetesNode& node) {
  std::int64_t sum = 0, weights = 0;
  for (const char* name : {"cpu", "memory"}) {
    const std::int64_t offered = amount(node.allocatable, name);
    if (offered == 0) continue;
    const std::int64_t u = used(world, node, name, true) + amount(pod.scored_request, name);
    sum += u > offered ? 0 : (offered - u) * 100 / offered;
    ++weights;
  }
  return weights == 0 ? 0 : sum / weights;
}

std::int64_t balanced(const World& world, const KubernetesPod& pod, const KubernetesNode& node) {
  if (amount(pod.request, "cpu") == 0 && amount(pod.request, "memory") == 0) return 0;
  std::vector<double> fractions;
  for (const char* name : {"cpu", "memory"}) {
    const std::int64_t offered = amount(node.allocatable, name);
    if (offered == 0) continue;
    const std::int64_t u = used(world, node, name, false) + amount(pod.request, name);
    fractions.push_back(std::min(1.0, static_cast<double>(u) / static_cast<double>(offered)));
  }
  const double std = fractions.size() == 2 ? std::fabs(fractions[0] - fractions[1]) / 2 : 0;
  return static_cast<std::int64_t>((1 - std) * 100);
}

std::int64_t images(const World& world, const KubernetesPod& pod, const KubernetesNode& node) {
  const auto bytes_on = [](const KubernetesNode& where, const std::string& name) {
    for (const NodeImage& image : where.images) {
      if (has(image.names, name)) return image.bytes;
    }
    return std::int64_t{-1};
  };
  std::int64_t sum = 0;
  for (const std::string& name : pod.images) {  // all have tags
    if (bytes_on(node, name) < 0) continue;
    double with = 0;
    for (const KubernetesNode& other : world.nodes) with += bytes_on(other, name) >= 0 ? 1 : 0;
    sum += static_cast<std::int64_t>(static_cast<double>(bytes_on(node, name)) *
                                     (with / static_cast<double>(world.nodes.size())));
  }
  const std::int64_t low = std::int64_t{23} << 20;
  const std::int64_t high = (std::int64_t{1000} << 20) * std::max<std::int64_t>(pod.containers, 1);
  return 100 * (std::clamp(sum, low, high) - low) / (high - low);
}

void normalise(std::vector<std::int64_t>* scores, bool reversed) {
  std::int64_t most = 0;
  for (const std::int64_t s : *scores) most = std::max(most, s);
  for (std::int64_t& s : *scores) {
    if (most > 0) s = 100 * s / most;
    if (reversed) s = 100 - s;
  }
}

}  // namespace

const KubernetesNode* World::find(const std::string& node) const {
  for (const KubernetesNode& one : nodes) {
    if (one.facts.name == node) return &one;
  }
  return nullptr;
}

std::string refused_by(const World& world, const KubernetesPod& pod, const KubernetesNode& node) {
  if (node.unschedulable &&
      !tolerated(pod, {"node.kubernetes.io/unschedulable", "", "NoSchedule"})) {
    return "NodeUnschedulable";
  }
  if (has_hard_taint(pod, node)) return "TaintToleration";
  if (!node_affinity(pod, node)) return "NodeAffinity";
  if (!ports_free(world, pod, node)) return "NodePorts";
  if (!fits(world, pod, node)) return "NodeResourcesFit";
  if (!spreads(world, pod, node)) return "PodTopologySpread";
  if (!pods_agree(world, pod, node)) return "InterPodAffinity";
  return "";
}

std::map<std::string, std::vector<std::int64_t>> scores(
    const World& world, const KubernetesPod& pod, const std::vector<const KubernetesNode*>& nodes) {
  std::map<std::string, std::vector<std::int64_t>> out;
  for (const KubernetesNode* node : nodes) {
    std::int64_t soft = 0, preferred = 0;
    for (const Taint& taint : node->facts.taints) {
      if (taint.effect == "PreferNoSchedule" && !tolerated(pod, taint)) ++soft;
    }
    for (const PreferredTerm& term : pod.preferred) {
      if (term_matches(term.term, *node)) preferred += term.weight;
    }
    out["TaintToleration"].push_back(soft);
    out["NodeAffinity"].push_back(preferred);
    out["NodeResourcesFit"].push_back(least_allocated(world, pod, *node));
    out["NodeResourcesBalancedAllocation"].push_back(balanced(world, pod, *node));
    out["InterPodAffinity"].push_back(pod_affinity_raw(world, pod, *node));
    out["ImageLocality"].push_back(images(world, pod, *node));
  }
  normalise(&out["TaintToleration"], true);
  normalise(&out["NodeAffinity"], false);
  out["PodTopologySpread"] = spread_scores(world, pod, nodes);
  auto& pods = out["InterPodAffinity"];
  if (!pods.empty()) {
    const auto [least, most] = std::minmax_element(pods.begin(), pods.end());
    const std::int64_t low = *least, range = *most - *least;
    for (std::int64_t& s : pods) {
      s = range == 0 ? 0
                     : static_cast<std::int64_t>(
                           100 * (static_cast<double>(s - low) / static_cast<double>(range)));
    }
  }
  return out;
}

}  // namespace penstock::plain
