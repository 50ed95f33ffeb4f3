// Ranks that go on when others die: sum, lose a rank, shrink, sum again.
//
//   penstock run -n 4 --grace 30 -- ./survive [RANK]
//
// The rank that is named kills itself (none is, without an argument). The others report who died,
// and finish without it. Under penstock run the job's status is still that of the rank that died.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "penstock/penstock.hpp"

int main(int count, char** arguments) {
  const long victim = count > 1 ? std::strtol(arguments[1], nullptr, 10) : -1;
  try {
    penstock::world world;
    int alive = 0;
    for (int step = 0; step < 3; ++step) {
      if (step == 1 && victim == static_cast<long>(world.rank()) && world.epoch() == 1) {
        ::kill(::getpid(), SIGKILL);
      }
      try {
        const int one = 1;
        world.all_reduce(&one, &alive, 1);
      } catch (const penstock::failure& failure) {
        std::printf("rank %u: %s\n", world.rank(), failure.what());
        world = world.shrink();
        --step;  // once more, with those who are left
      }
    }
    std::printf("rank %u of %u in epoch %llu: %d alive%s\n", world.rank(), world.size(),
                static_cast<unsigned long long>(world.epoch()), alive,
                alive == static_cast<int>(world.size()) ? "" : " WRONG");
    return 0;
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
