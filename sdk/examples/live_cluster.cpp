// A cluster that changes while decisions are made: nodes are cordoned, pods end.
#include <cstdio>
#include <string>

#include "penstock/penstock.hpp"

namespace {

std::string node(const std::string& name, const std::string& cpu, bool cordoned = false) {
  return R"({"kind":"Node","metadata":{"name":")" + name +
         R"(","labels":{"kubernetes.io/hostname":")" + name + R"("}},"spec":{"unschedulable":)" +
         (cordoned ? "true" : "false") + R"(},"status":{"allocatable":{"cpu":")" + cpu +
         R"(","memory":"16Gi","pods":"110"}}})";
}

// A replica that shares its node with no other of its kind.
std::string web(int number) {
  return R"({"kind":"Pod","metadata":{"name":"web-)" + std::to_string(number) +
         R"(","labels":{"app":"web"}},"spec":{"containers":[{"name":"web","resources":{"requests":
         {"cpu":"1500m","memory":"1Gi"}}}],"affinity":{"podAntiAffinity":{
         "requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname",
         "labelSelector":{"matchLabels":{"app":"web"}}}]}}}})";
}

void decide(penstock::cluster& cluster, int number) {
  const penstock_decision decision = cluster.decide(web(number));
  if (decision.node[0] == '\0') {
    std::printf("web-%d waits: %s\n", number, cluster.why().c_str());
  } else {
    std::printf("web-%d goes to %s (score %lld, %u nodes would do)\n", number, decision.node,
                static_cast<long long>(decision.score), decision.feasible);
  }
}

}  // namespace

int main() {
  try {
    penstock::cluster cluster;
    cluster.put(node("small", "2"));
    cluster.put(node("big", "8"));
    for (int number = 0; number < 3; ++number) decide(cluster, number);  // the third has no place
    cluster.put(node("small", "2", true));                               // cordoned
    cluster.remove("Pod", "default/web-0");                              // which ran on big
    decide(cluster, 2);
    return 0;
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
