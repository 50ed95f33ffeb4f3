// Batches: many tasks in one request, in an order of their own, some of which belong together.
//
// A **gang** is placed as a whole or not at all: its members are placed one after another, each
// sees those before it, and when one of those that it needs finds no place, all are taken back.
// Taking back is a change like any other: cells, counts, bits and GPUs are as they were before, and
// the table's generation has risen, by one for each member placed and by one for each taken back.
// So whoever watches the generation sees that something happened, and never one generation with two
// contents.
#ifndef PENSTOCK_SCHED_GANG_H_
#define PENSTOCK_SCHED_GANG_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/cluster.h"
#include "penstock/sched/node_table.h"
#include "penstock/sched/preemption.h"

namespace penstock {

struct GangResult {
  bool placed = false;
  std::uint32_t failed = 0;              // when not placed: the first member without a place
  std::vector<penstock_result> results;  // of the members that were asked, in order
};

// Places all tasks on the table, or none. Errors are the table's; nothing is placed then either.
Result<GangResult> place_gang(NodeTable& table, const penstock_program& program,
                              std::span<const Task> tasks);

struct BatchPod {
  KubernetesPod pod;
  std::string gang;         // "": it stands for itself
  std::uint32_t needs = 0;  // of a gang: members without which none is placed; 0: all
};

struct BatchOptions {
  bool preempt = false;  // pods of lower priority make room, as preempt() chooses them
  std::span<const DisruptionBudget> budgets;
};

struct BatchOutcome {
  std::string node;  // "": it has no place
  std::string reason;
  std::vector<std::string> victims;  // keys of pods that were removed for it
};

// Places the pods on the cluster, where they stay, by priority (the highest first) and then in the
// order given; a gang stands where the first member of its highest priority would. One outcome for
// each pod, in the order given. A gang of which more than `needs` members find places keeps them
// all; where it fails, victims that made room for it come back. invalid_argument for a gang whose
// members disagree about `needs` or that needs more than it has, already_exists for a pod that has
// a node: nothing is placed then. Other errors are the cluster's, and end the batch; what was
// placed before stays.
Result<std::vector<BatchOutcome>> place_batch(Cluster& cluster, std::span<const BatchPod> pods,
                                              const BatchOptions& options = {});

}  // namespace penstock
#endif
