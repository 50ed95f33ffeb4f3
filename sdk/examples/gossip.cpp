// Averaging without a collective: in every round each rank meets one random partner, and both take
// the average. After some rounds all have nearly the mean of all.
#include <cmath>
#include <cstdio>
#include <vector>

#include "penstock/penstock.hpp"

int main() {
  try {
    constexpr std::uint64_t kSeed = 2024;
    constexpr int kRounds = 30;
    penstock::world world;
    std::vector<float> model(10'000, static_cast<float>(world.rank()));
    const double mean = (world.size() - 1) / 2.0;
    for (int round = 0; round < kRounds; ++round) {
      world.pairwise_average(kSeed, static_cast<std::uint64_t>(round), model.data(), model.size());
    }
    double worst = 0;
    for (const float value : model) worst = std::fmax(worst, std::fabs(value - mean));
    // Every round halves the expected squared distance, or better.
    const double allowed = world.size() * std::ldexp(1, -kRounds / 4);
    std::printf("rank %u of %u: at most %g from the mean %g after %d rounds, %s\n", world.rank(),
                world.size(), worst, mean, kRounds, worst <= allowed ? "right" : "WRONG");
    const penstock_statistics numbers = world.statistics();
    if (numbers.timed != 0) {
      const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1000; };
      std::printf("rank %u: %u calls, %g us, of which %g us waiting\n", world.rank(),
                  static_cast<unsigned>(numbers.calls), us(numbers.ns), us(numbers.wait_ns));
    }
    world.barrier();
    return worst <= allowed ? 0 : 1;
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
