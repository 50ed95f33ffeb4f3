// What is known of a node beyond numbers. Selectors, tolerations and the like are asked of it once,
// when their bit column is made.
#ifndef PENSTOCK_SCHED_NODE_FACTS_H_
#define PENSTOCK_SCHED_NODE_FACTS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace penstock {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule, PreferNoSchedule or NoExecute
  bool operator==(const Taint&) const = default;
};

struct NodeFacts {
  std::string name;
  std::string model;  // of its GPUs; "" if none
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  bool operator==(const NodeFacts&) const = default;
};

// Pure: the same facts give the same answer.
using NodePredicate = std::function<bool(const NodeFacts&)>;

}  // namespace penstock
#endif
