// Bytes as a KubeSchedulerConfiguration. What reads without an error compiles to a program, or says
// why not, and what it says names something.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "penstock/sched/profile_policy.h"
#include "penstock/sched/scheduler_config.h"

namespace {

std::unique_ptr<penstock::NodeTable> make_table() {
  using namespace penstock;
  NodeTableConfig config;
  config.capacity = 64;
  config.resources = {{"cpu", "milli"}, {"memory", "bytes"}, {"pods", ""}, {"nvidia.com/gpu", ""}};
  return NodeTable::create(nullptr, make_engine("scalar").value(), config).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  static const std::unique_ptr<NodeTable> table = make_table();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = parse_scheduler_config(text, "input");
  if (!config.ok()) {
    if (config.status().message().find("input") == std::string::npos) std::abort();
    return 0;
  }
  if (config.value().profiles.empty()) std::abort();
  for (const SchedulerProfile& profile : config.value().profiles) {
    const auto program = compile_profile(profile, *table);
    if (!program.ok() && program.status().message().empty()) std::abort();
    // Only weights whose sum could overflow are left to the program's own check.
    if (!program.ok() && program.status().message().find("valid program") == std::string::npos) {
      std::abort();
    }
  }
  return 0;
}
