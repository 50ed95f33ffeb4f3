// A task: what is to be placed, ready for an engine.
#ifndef PENSTOCK_SCHED_TASK_H_
#define PENSTOCK_SCHED_TASK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/descriptor/node_table.h"

namespace penstock {

// Which question a term of a task answers; the number is the group of the operation on bits or
// domains that asks it.
enum class TermGroup : std::uint8_t {
  unschedulable = 1,
  taints = 2,
  node_affinity = 3,
  ports = 4,
  model = 5,
  preferred_affinity = 6,
  preferred_taints = 7,
  spread = 8,  // from here on of domain terms
  pod_affinity = 9,
  preferred_spread = 10,
  preferred_pod_affinity = 11,
  images = 12,
  candidates = 13,  // of bits, as those before `spread`
};

struct Task {
  Task() { record.row = -1; }
  std::string name;
  penstock_task record{};
  std::vector<std::string> unsupported;  // terms that are not evaluated, a sentence each
  // Raises that the record has no room for; a commit of the record alone is not the whole.
  std::vector<penstock_raise> more_raises;
  // Columns were computed for one decision: the task is made again for the next.
  bool once = false;
};

// Adds a term to the task; no_space names the task when it has PENSTOCK_MAX_TERMS already.
Status add_term(Task* task, TermGroup group, std::uint16_t column, bool clear,
                std::int32_t weight = 0);

}  // namespace penstock
#endif
