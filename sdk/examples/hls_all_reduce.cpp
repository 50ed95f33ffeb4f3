// The same all-reduce twice: on the engine `hls`, which runs the HLS kernels compiled as C++, and
// on `scalar`, which defines every result. They give the same bits, subnormal numbers included.
// Start it with `penstock run -n 3 -- ./hls_all_reduce`; alone it works, too.
#include <cstdio>
#include <cstring>
#include <vector>

#include "penstock/penstock.hpp"

namespace {

constexpr std::size_t kCount = 10'000;

std::vector<float> average_on(const char* engine, const std::vector<float>& values) {
  penstock_comm_config config = PENSTOCK_COMM_CONFIG_INIT;
  config.name = engine;
  config.engine = engine;
  penstock::world world(config);
  std::vector<float> mine(values);
  for (float& value : mine) value *= static_cast<float>(world.rank() + 1);
  std::vector<float> average(values.size());
  world.all_reduce(mine.data(), average.data(), values.size(), PENSTOCK_AVG);
  if (world.rank() == 0)
    std::printf("%s: %u ranks, average[1] = %g\n", world.engine().c_str(), world.size(),
                static_cast<double>(average[1]));
  return average;
}

}  // namespace

int main() {
  try {
    // Down to the smallest numbers that there are, which floating-point units like to flush to 0.
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
      values[i] = static_cast<float>(i) * (i % 2 == 0 ? 0.001f : 1e-44f);
    const std::vector<float> on_hls = average_on("hls", values);
    const std::vector<float> on_scalar = average_on("scalar", values);
    const bool same = std::memcmp(on_hls.data(), on_scalar.data(), kCount * sizeof(float)) == 0;
    std::printf("%zu averages: %s\n", kCount, same ? "the same bits, right" : "WRONG");
    return same ? 0 : 1;
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
