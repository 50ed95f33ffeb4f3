// A card that XRT knows executes what a rank has to do: an average of all ranks' vectors.
//   penstock run -n 2 -- ./xrt_card FILE.xclbin [DEVICE]
// Each rank needs a device of its own, unless it is a simulated one. Where there is none, the
// reason is printed, and the same is done by the host.
#include <cstdio>
#include <string>
#include <vector>

#include "penstock/penstock.hpp"

namespace {

int average(penstock::comm& comm) {
  const auto rank = static_cast<float>(comm.rank());
  const auto ranks = static_cast<float>(comm.size());
  std::vector<float> values(3001, 10 + rank);
  comm.all_reduce(values.data(), values.data(), values.size(), PENSTOCK_AVG);
  const float expected = 10 + (ranks - 1) / 2;
  bool right = true;
  for (const float value : values) right = right && value == expected;
  std::printf("rank %u of %u, engine %s: the average is %g, %s\n", comm.rank(), comm.size(),
              comm.engine().c_str(), static_cast<double>(values.front()),
              right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: xrt_card FILE.xclbin [DEVICE]\n");
    return 2;
  }
  const std::string engine =
      "card:xrt;xclbin=" + std::string(argv[1]) + ";device=" + (argc > 2 ? argv[2] : "0");
  penstock_comm_config config = PENSTOCK_COMM_CONFIG_INIT;
  try {
    config.engine = engine.c_str();
    penstock::comm comm(config);
    return average(comm);
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
  }
  try {
    config.engine = "simd";
    penstock::comm comm(config);
    return average(comm);
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
