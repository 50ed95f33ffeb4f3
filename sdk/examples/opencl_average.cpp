// Ranks average vectors, and an OpenCL device adds them up. Every engine gives the same bits, which
// a second comm shows, whose ranks work with the definition of all results.
// Start it with `penstock run -n 3 -- ./opencl_average`, and a part of the device's name if there
// is more than one: `./opencl_average Radeon`. `penstock info` lists what there is.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "penstock/penstock.hpp"

namespace {

// A number for each rank and place, from about 2^-10 to 2^10 and of both signs, as bf16.
penstock::bf16 number(std::uint32_t rank, std::uint64_t place) {
  std::uint64_t bits = (place * 64 + rank + 1) * 0x9e3779b97f4a7c15u;
  bits ^= bits >> 29;
  return {static_cast<std::uint16_t>((bits & 0x807f) | (117 + bits / 256 % 20) << 7)};
}

// The average over the ranks of a comm whose descriptors `engine` executes.
std::vector<penstock::bf16> average(const std::string& engine, const char* name,
                                    std::uint64_t count) {
  penstock_comm_config config = PENSTOCK_COMM_CONFIG_INIT;
  config.name = name;
  config.engine = engine.c_str();
  penstock::comm comm(config);  // rank and size come from the launcher, the pool with them
  std::vector<penstock::bf16> vector(count);
  for (std::uint64_t i = 0; i < count; ++i) vector[i] = number(comm.rank(), i);
  comm.all_reduce(vector.data(), vector.data(), count, PENSTOCK_AVG);
  if (comm.rank() == 0)
    std::printf("%u ranks averaged %llu bf16 with %s\n", comm.size(),
                static_cast<unsigned long long>(count), comm.engine().c_str());
  return vector;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::uint64_t kCount = 300001;  // no multiple of anything
  const std::string device = argc > 1 ? argv[1] : "";
  try {
    const auto by_device = average("opencl:" + device, "device", kCount);
    const auto by_definition = average("scalar", "defined", kCount);
    const bool same =
        std::memcmp(by_device.data(), by_definition.data(), kCount * sizeof(by_device[0])) == 0;
    std::printf("the device's bits are %s\n", same ? "those of the definition" : "WRONG");
    return same ? 0 : 1;
  } catch (const penstock::failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
