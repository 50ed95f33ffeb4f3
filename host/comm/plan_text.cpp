// Plans for people.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "penstock/comm/plan.h"

namespace penstock {
namespace {

std::string device_of(const Plan& plan, const Block& block) {
  return plan.key.topology.payload_devices == 1 ? std::string()
                                                : fmt::format(" dev {}", block.device);
}

// "send[2] +0" or "block 3 of rank 1 dev 0"; the offset only where it says something.
std::string slice_text(const Plan& plan, const Slice& slice) {
  std::string text;
  if (slice.space == Space::block) {
    if (slice.index >= plan.blocks.size()) return fmt::format("block {}?", slice.index);
    const Block& block = plan.blocks[slice.index];
    text = fmt::format("block {} (rank {}{})", slice.index, block.writer, device_of(plan, block));
  } else {
    text = fmt::format("{}[{}]", slice.space == Space::send ? "send" : "recv", slice.index);
  }
  if (slice.offset != 0) text += fmt::format(" +{}", slice.offset);
  return text;
}

std::string list_text(const Plan& plan, const std::vector<Slice>& slices) {
  std::string text;
  for (const Slice& slice : slices) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", slice_text(plan, slice));
  }
  return text;
}

std::string step_text(const Plan& plan, const Step& step) {
  switch (step.kind) {
    case StepKind::copy:
    case StepKind::reduce:
      return fmt::format("{:>10}  {} -> {}", step.src.empty() ? 0 : step.src.front().bytes,
                         list_text(plan, step.src), list_text(plan, step.dst)) +
             (step.combines ? " (over the groups)" : "");
    case StepKind::signal:
      return fmt::format("{:>10}  {}", "", step.value);
    case StepKind::wait:
      return fmt::format("{:>10}  signal {} of rank {}", "", step.value, step.rank);
    case StepKind::reuse:
      return fmt::format("{:>10}  rank {} has finished the pass before the previous one", "",
                         step.rank);
  }
  return {};
}

std::string header(const Plan& plan) {
  const PlanKey& key = plan.key;
  const Topology& topology = key.topology;
  const PoolTraffic traffic = pool_traffic(plan);
  std::string text =
      fmt::format("{}, {} rank{}, {} payload device{}", collective_name(key.collective),
                  topology.ranks, topology.ranks == 1 ? "" : "s", topology.payload_devices,
                  topology.payload_devices == 1 ? "" : "s");
  if (topology.is_grouped()) {
    text += fmt::format(", {} groups of {} ranks", topology.groups(), topology.group);
  }
  if (has_root(key.collective)) text += fmt::format(", root {}", key.root);
  text += fmt::format("\n  part        {} bytes, elements of {} bytes{}\n", key.part_bytes,
                      key.element_bytes, key.in_place ? ", in place" : "");
  text += fmt::format("  algorithm   {}{}\n", plan.algorithm,
                      key.algorithm == plan.algorithm ? "" : fmt::format(" ({})", key.algorithm));
  text += fmt::format("  definition  {}\n", plan.definition);
  text +=
      fmt::format("  pool        {} bytes written, {} bytes read\n", traffic.written, traffic.read);
  if (plan.is_inlined()) {
    text += "  blocks      inlined: payload and flag share the cache line\n";
  } else if (!plan.blocks.empty()) {
    text += "  half       ";
    for (std::size_t d = 0; d < plan.half_bytes.size(); ++d) {
      text += fmt::format(" device {}: {} bytes{}", d, plan.half_bytes[d],
                          d + 1 < plan.half_bytes.size() ? "," : "\n");
    }
  }
  return text;
}

}  // namespace

std::string plan_to_text(const Plan& plan) {
  std::string text = header(plan);
  if (!plan.blocks.empty()) {
    text += "\nblock  writer  device      offset       bytes\n";
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
      const Block& block = plan.blocks[b];
      text += fmt::format("{:>5}  {:>6}  {:>6}  {:>10}  {:>10}\n", b, block.writer,
                          block.inlined ? "inline" : fmt::format("{}", block.device), block.offset,
                          block.bytes);
    }
  }
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    text += fmt::format("\nrank {}\n", r);
    text += plan.ranks[r].empty() ? "  nothing to do\n" : " step  kind         bytes  what\n";
    for (std::size_t s = 0; s < plan.ranks[r].size(); ++s) {
      const Step& step = plan.ranks[r][s];
      text +=
          fmt::format("{:>5}  {:<6}  {}\n", s, step_kind_name(step.kind), step_text(plan, step));
    }
  }
  return text;
}

}  // namespace penstock
