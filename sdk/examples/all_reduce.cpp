// The smallest program: every rank contributes a vector, every rank gets the sum.
// Start it with `penstock run -n 4 -- ./all_reduce`, torchrun, mpirun or srun; alone it works, too.
#include <cstdio>
#include <vector>

#include "penstock/penstock.hpp"

int main() {
  try {
    penstock::world world;  // rank and size come from the launcher, the pool with them
    std::vector<float> gradient(1 << 20, static_cast<float>(world.rank() + 1));
    world.all_reduce(gradient.data(), gradient.data(), gradient.size());
    const auto n = static_cast<float>(world.size());
    const bool right = gradient.front() == n * (n + 1) / 2 && gradient.back() == gradient.front();
    std::printf("rank %u of %u: sum %g, %s\n", world.rank(), world.size(), gradient.front(),
                right ? "right" : "WRONG");
    return right ? 0 : 1;
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
