// The HLS kernel of REDUCE through XRT itself: the mean of three vectors of bf16, in one buffer.
//   xrt_kernel FILE.xclbin [DEVICE]
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "penstock/descriptor/types.h"

namespace {

constexpr std::uint64_t kCount = 5000;
constexpr std::uint32_t kSources = 3;
constexpr std::uint64_t kStride = 10240;  // from one vector to the next, on lines of 64 bytes

// bf16 is the upper half of a float.
std::uint16_t narrow(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<std::uint16_t>(bits >> 16);
}

// Whole numbers that bf16 holds, and whose mean is one, too.
float element(std::uint32_t source, std::uint64_t i) {
  return static_cast<float>((i % 32) * 3 + source * 3);
}

int run(const char* file, const std::string& name) {
  xrt::device device(name);
  const xrt::uuid uuid = device.load_xclbin(std::string(file));
  xrt::kernel reduce(device, uuid, "penstock_hls_reduce");

  xrt::bo pool(device, (kSources + 1) * kStride, reduce.group_id(0));
  xrt::bo list(device, 4096, reduce.group_id(3));
  auto* vectors = pool.map<std::uint8_t*>();
  auto* sources = list.map<std::uint64_t*>();
  for (std::uint32_t source = 0; source < kSources; ++source) {
    sources[source] = source * kStride;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const std::uint16_t value = narrow(element(source, i));
      std::memcpy(vectors + source * kStride + 2 * i, &value, 2);
    }
  }
  pool.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  list.sync(XCL_BO_SYNC_BO_TO_DEVICE);

  // The arguments are in the order of penstock_hls.h: bases, where things are from there, numbers.
  const std::uint64_t destination = kSources * kStride, none = 0;
  xrt::run started = reduce(pool, pool, pool, list, destination, none, none, kCount, none,
                            std::uint32_t{PENSTOCK_BF16}, std::uint32_t{PENSTOCK_AVG},
                            std::uint32_t{PENSTOCK_BF16}, kSources, std::uint32_t{1});
  if (const ert_cmd_state state = started.wait(); state != ERT_CMD_STATE_COMPLETED) {
    std::fprintf(stderr, "the kernel ends in state %d\n", static_cast<int>(state));
    return 1;
  }
  pool.sync(XCL_BO_SYNC_BO_FROM_DEVICE);

  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const std::uint16_t expected = narrow(element(1, i));  // the one in the middle
    wrong += std::memcmp(vectors + destination + 2 * i, &expected, 2) != 0 ? 1 : 0;
  }
  std::printf("the mean of %u vectors of %llu bf16: %s\n", kSources,
              static_cast<unsigned long long>(kCount), wrong == 0 ? "right" : "WRONG");
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: xrt_kernel FILE.xclbin [DEVICE]\n");
    return 2;
  }
  try {
    return run(argv[1], argc > 2 ? argv[2] : "0");
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "xrt_kernel: %s\n", failure.what());
    return 2;
  }
}
