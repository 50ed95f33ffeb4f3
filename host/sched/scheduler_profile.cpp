#include "penstock/sched/scheduler_profile.h"

namespace penstock {

SchedulerProfile SchedulerProfile::defaults() {
  SchedulerProfile profile;
  profile.filters = {"NodeUnschedulable", "NodeName",        "TaintToleration",
                     "NodeAffinity",      "NodePorts",       "NodeResourcesFit",
                     "PodTopologySpread", "InterPodAffinity"};
  profile.scores = {{"TaintToleration", 3},  {"NodeAffinity", 2},
                    {"NodeResourcesFit", 1}, {"PodTopologySpread", 2},
                    {"InterPodAffinity", 2}, {"NodeResourcesBalancedAllocation", 1},
                    {"ImageLocality", 1}};
  return profile;
}

}  // namespace penstock
