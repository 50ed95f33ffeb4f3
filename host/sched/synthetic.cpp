#include "penstock/sched/synthetic.h"

#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <span>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/random.h"

namespace penstock {
namespace {

constexpr std::uint32_t kMaxPods = 1u << 24;

// The tables follow the proportions of the published trace (Alibaba GPU trace of 2023, "openb"):
// how many of its 1213 nodes are of each kind, and how many of its 8152 pods ask for what.
struct NodeKind {
  std::uint32_t parts;
  std::int64_t cpu_milli;
  std::int64_t memory_mib;
  std::uint32_t gpus;
  const char* model;
};
constexpr std::array<NodeKind, 12> kNodeKinds = {{
    {549, 96000, 393216, 8, "G2"},
    {389, 104000, 524288, 2, "T4"},
    {107, 16000, 122880, 2, "P100"},
    {39, 128000, 786432, 8, "G3"},
    {28, 32000, 131072, 4, "V100M16"},
    {22, 64000, 262144, 2, "P100"},
    {21, 96000, 786432, 8, "V100M32"},
    {19, 8000, 32768, 1, "V100M16"},
    {17, 96000, 393216, 4, "T4"},
    {9, 48000, 376832, 4, "V100M32"},
    {8, 64000, 262144, 8, "V100M16"},
    {5, 8000, 61440, 2, "P100"},
}};

struct GpuDemand {
  std::uint32_t parts;
  std::uint32_t num_gpu;
  std::uint32_t gpu_milli;
};
constexpr std::array<GpuDemand, 19> kGpuDemands = {{
    {3911, 1, 1000}, {1088, 0, 0},  {1078, 1, 810}, {750, 1, 470}, {328, 1, 320},
    {253, 1, 650},   {140, 1, 230}, {128, 1, 460},  {75, 1, 590},  {74, 1, 160},
    {72, 1, 550},    {62, 1, 220},  {47, 1, 370},   {44, 8, 1000}, {24, 1, 110},
    {19, 1, 480},    {27, 1, 330},  {16, 2, 1000},  {15, 4, 1000},
}};

struct HostDemand {
  std::uint32_t parts;
  std::int64_t cpu_milli;
  std::int64_t memory_mib;
};
// Of pods that take whole GPUs, share one, and have none; the first two per GPU.
constexpr std::array<HostDemand, 12> kWholeGpu = {{
    {857, 11300, 49152},
    {534, 11400, 48128},
    {470, 3152, 5600},
    {255, 18708, 64512},
    {195, 9810, 41560},
    {158, 12000, 24576},
    {158, 15700, 58368},
    {153, 11908, 47104},
    {108, 16000, 32768},
    {104, 8000, 16384},
    {104, 4000, 24576},
    {99, 12000, 16384},
}};
constexpr std::array<HostDemand, 9> kSharedGpu = {{
    {1122, 3152, 5600},
    {625, 11908, 47104},
    {486, 8000, 30517},
    {189, 4000, 22888},
    {182, 4000, 15258},
    {152, 4152, 10600},
    {136, 4000, 30517},
    {51, 6000, 6144},
    {29, 6000, 12288},
}};
constexpr std::array<HostDemand, 5> kWithoutGpu = {{
    {364, 12500, 57344},
    {284, 32000, 49152},
    {163, 8000, 30517},
    {120, 15400, 51200},
    {95, 16500, 51200},
}};

template <typename Entry, std::size_t kSize>
const Entry& draw(const std::array<Entry, kSize>& entries, SplitMix64* random) {
  std::uint64_t parts = 0;
  for (const Entry& entry : entries) parts += entry.parts;
  std::uint64_t at = random->below(parts);
  for (const Entry& entry : entries) {
    if (at < entry.parts) return entry;
    at -= entry.parts;
  }
  return entries.back();
}

}  // namespace

Result<SyntheticTrace> synthetic_trace(const SyntheticConfig& config) {
  if (config.nodes < 1 || config.nodes > PENSTOCK_MAX_ROWS) {
    return error(Code::invalid_argument, "a synthetic cluster of {} nodes, expected 1 to {}",
                 config.nodes, PENSTOCK_MAX_ROWS);
  }
  if (config.pods < 1 || config.pods > kMaxPods) {
    return error(Code::invalid_argument, "a synthetic list of {} pods, expected 1 to {}",
                 config.pods, kMaxPods);
  }
  SplitMix64 random(config.seed);
  SyntheticTrace trace;
  trace.nodes.reserve(config.nodes);
  trace.pods.reserve(config.pods);
  for (std::uint32_t i = 0; i < config.nodes; ++i) {
    // The first is of the commonest kind, so that there always is a GPU.
    const NodeKind& kind = i == 0 ? kNodeKinds[0] : draw(kNodeKinds, &random);
    trace.nodes.push_back(
        {fmt::format("node-{:04}", i), kind.cpu_milli, kind.memory_mib, kind.gpus, kind.model});
  }
  for (std::uint32_t i = 0; i < config.pods; ++i) {
    const GpuDemand& gpu = i == 0 ? kGpuDemands[0] : draw(kGpuDemands, &random);
    const HostDemand& host = gpu.num_gpu == 0       ? draw(kWithoutGpu, &random)
                             : gpu.gpu_milli < 1000 ? draw(kSharedGpu, &random)
                                                    : draw(kWholeGpu, &random);
    const std::int64_t times = gpu.num_gpu > 1 ? gpu.num_gpu : 1;
    trace.pods.push_back({fmt::format("pod-{:05}", i), host.cpu_milli * times,
                          host.memory_mib * times, gpu.num_gpu, gpu.gpu_milli, ""});
  }
  return trace;
}

}  // namespace penstock
