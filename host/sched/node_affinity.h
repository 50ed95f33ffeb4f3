// Node selectors and node affinity (kube-scheduler's NodeAffinity, v1.34).
#ifndef PENSTOCK_SCHED_NODE_AFFINITY_H_
#define PENSTOCK_SCHED_NODE_AFFINITY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sched/kubernetes.h"
#include "penstock/sched/node_facts.h"
#include "penstock/sched/node_table.h"

namespace penstock {

// Up to 63 characters of [A-Za-z0-9._-], the first and last alphanumeric; or nothing.
bool is_label_value(std::string_view text);
// An optional DNS subdomain and '/', then a name like a label value that is not empty.
bool is_label_key(std::string_view text);
// What Gt and Lt compare, as Go's strconv.ParseInt reads it in base 10: digits after at most one
// sign, within 64 bits.
std::optional<std::int64_t> whole_number(std::string_view text);

// A term that is not well formed (an operator without the values that it takes, a key or value that
// no label can have) matches nothing, and neither does one without requirements.
bool matches(const SelectorTerm& term, const NodeFacts& node);
// The node selector and, if there is any, one of the required terms.
bool matches_required(const KubernetesPod& pod, const NodeFacts& node);
// The sum of the weights of the preferred terms that match.
std::int64_t preferred_weight(const std::vector<PreferredTerm>& terms, const NodeFacts& node);

// The same only for pods whose selector and required terms mean the same.
std::string required_key(const KubernetesPod& pod);

// What holds for every pod beside its own affinity.
struct AddedAffinity {
  bool has_required = false;
  std::vector<SelectorTerm> required;  // one of them
  std::vector<PreferredTerm> preferred;
};

// The terms of groups node_affinity and preferred_affinity; interns their columns.
Status add_affinity_terms(NodeTable* table, const KubernetesPod& pod, Task* task,
                          const AddedAffinity& added = {});

}  // namespace penstock
#endif
