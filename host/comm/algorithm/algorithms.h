// The algorithms, one per file. Each builds the steps of all ranks for at least two ranks and at
// least one byte; the file that defines it explains it.
#ifndef PENSTOCK_COMM_ALGORITHM_ALGORITHMS_H_
#define PENSTOCK_COMM_ALGORITHM_ALGORITHMS_H_

#include "penstock/comm/algorithm/builder.h"

namespace penstock::algorithm {

void all_reduce_one_shot(PlanBuilder& builder);
void all_reduce_two_phase(PlanBuilder& builder);
void all_reduce_two_level(PlanBuilder& builder);
void broadcast(PlanBuilder& builder);
void broadcast_two_level(PlanBuilder& builder);
void reduce_direct(PlanBuilder& builder);
void reduce_sharded(PlanBuilder& builder);
void reduce_two_level(PlanBuilder& builder);
void all_gather(PlanBuilder& builder);
void reduce_scatter(PlanBuilder& builder);
void reduce_scatter_two_level(PlanBuilder& builder);
void all_to_all(PlanBuilder& builder);
void gather(PlanBuilder& builder);
void scatter(PlanBuilder& builder);
void send_recv(PlanBuilder& builder);
void barrier(PlanBuilder& builder);

// Any collective of a single rank.
void local(PlanBuilder& builder);

}  // namespace penstock::algorithm
#endif
