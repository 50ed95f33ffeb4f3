// Where would the pending pods of a cluster go? Takes what `kubectl get nodes,pods -A -o json`
// prints, and the pods' names: place_pods cluster.json NAMESPACE/NAME...
#include <cstdio>

#include "penstock/penstock.hpp"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: place_pods CLUSTER.json NAMESPACE/NAME...\n");
    return 2;
  }
  try {
    penstock::cluster cluster(argv[1]);
    for (int i = 2; i < argc; ++i) {
      const penstock_decision decision = cluster.place(argv[i]);
      if (decision.node[0] == '\0') {
        std::printf("%s fits nowhere\n", argv[i]);
      } else {
        std::printf("%s goes to %s (score %lld, %u nodes would do)\n", argv[i], decision.node,
                    static_cast<long long>(decision.score), decision.feasible);
      }
    }
    return 0;
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
