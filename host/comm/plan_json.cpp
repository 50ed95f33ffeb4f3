// Plans for programs, and as a timeline for trace viewers.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "penstock/comm/plan.h"
#include "penstock/comm/plan_timeline.h"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

const char* space_name(Space space) {
  switch (space) {
    case Space::send:
      return "send";
    case Space::recv:
      return "recv";
    case Space::block:
      return "block";
  }
  return "?";
}

Json slices_json(const std::vector<Slice>& slices) {
  Json list = Json::array();
  for (const Slice& slice : slices) {
    list.push_back({{"space", space_name(slice.space)},
                    {"index", slice.index},
                    {"offset", slice.offset},
                    {"bytes", slice.bytes}});
  }
  return list;
}

Json step_json(const Step& step) {
  Json json = {{"kind", step_kind_name(step.kind)}};
  if (step.kind == StepKind::wait || step.kind == StepKind::reuse) json["rank"] = step.rank;
  if (step.kind == StepKind::wait || step.kind == StepKind::signal) json["value"] = step.value;
  if (step.combines) json["combines"] = true;
  if (!step.src.empty()) json["src"] = slices_json(step.src);
  if (!step.dst.empty()) json["dst"] = slices_json(step.dst);
  return json;
}

Json key_json(const PlanKey& key) {
  return {{"collective", collective_name(key.collective)},
          {"ranks", key.topology.ranks},
          {"payload_devices", key.topology.payload_devices},
          {"group", key.topology.group},
          {"root", key.root},
          {"element_bytes", key.element_bytes},
          {"part_bytes", key.part_bytes},
          {"in_place", key.in_place},
          {"algorithm", key.algorithm}};
}

std::string event_name(const Step& step) {
  switch (step.kind) {
    case StepKind::copy:
      if (!step.dst.empty() && step.dst.front().space == Space::block) return "write";
      return !step.src.empty() && step.src.front().space == Space::block ? "read" : "copy";
    case StepKind::reduce:
      return "reduce";
    case StepKind::signal:
      return fmt::format("signal {}", step.value);
    case StepKind::wait:
      return fmt::format("wait for signal {} of rank {}", step.value, step.rank);
    case StepKind::reuse:
      return fmt::format("reuse of rank {}", step.rank);
  }
  return "?";
}

// An arrow from the signal that a wait waits for.
void add_arrow(const Plan& plan, const std::vector<std::vector<Span>>& spans, std::size_t rank,
               std::size_t step, std::size_t number, Json* events) {
  const Step& wait = plan.ranks[rank][step];
  const std::vector<Step>& others = plan.ranks[wait.rank];
  for (std::size_t s = 0; s < spans[wait.rank].size(); ++s) {
    if (others[s].kind != StepKind::signal || others[s].value != wait.value) continue;
    const Json common = {{"name", "signal"}, {"cat", "signal"}, {"id", number}, {"pid", 0}};
    Json start = common;
    start.update({{"ph", "s"}, {"tid", wait.rank}, {"ts", spans[wait.rank][s].begin_us}});
    Json finish = common;
    finish.update({{"ph", "f"}, {"bp", "e"}, {"tid", rank}, {"ts", spans[rank][step].end_us}});
    events->push_back(std::move(start));
    events->push_back(std::move(finish));
    return;
  }
}

}  // namespace

std::string plan_to_json(const Plan& plan) {
  const PoolTraffic traffic = pool_traffic(plan);
  Json json = {{"key", key_json(plan.key)},       {"algorithm", plan.algorithm},
               {"definition", plan.definition},   {"pool_bytes_written", traffic.written},
               {"pool_bytes_read", traffic.read}, {"half_bytes", plan.half_bytes},
               {"signals", plan.signals}};
  json["blocks"] = Json::array();
  for (const Block& block : plan.blocks) {
    json["blocks"].push_back({{"writer", block.writer},
                              {"device", block.device},
                              {"offset", block.offset},
                              {"bytes", block.bytes},
                              {"inlined", block.inlined}});
    if (block.pushable) json["blocks"].back()["pushable"] = true;
    if (block.mirror.bytes > 0) json["blocks"].back()["mirror"] = slices_json({block.mirror})[0];
  }
  json["ranks"] = Json::array();
  for (const std::vector<Step>& steps : plan.ranks) {
    Json list = Json::array();
    for (const Step& step : steps) list.push_back(step_json(step));
    json["ranks"].push_back(std::move(list));
  }
  return json.dump(2) + "\n";
}

// The format is the "Trace Event Format" of Chromium's catapult project: complete events ("X") and
// flow events ("s", "f"), times in microseconds.
std::string plan_to_chrome_trace(const Plan& plan) {
  const std::vector<std::vector<Span>> spans = plan_timeline(plan);
  Json events = Json::array();
  events.push_back(
      {{"ph", "M"}, {"name", "process_name"}, {"pid", 0}, {"args", {{"name", "ranks"}}}});
  std::size_t arrows = 0;
  for (std::size_t r = 0; r < spans.size(); ++r) {
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 0},
                      {"tid", r},
                      {"args", {{"name", fmt::format("rank {}", r)}}}});
    for (std::size_t s = 0; s < spans[r].size(); ++s) {
      const Step& step = plan.ranks[r][s];
      Json args = step_json(step);
      args["step"] = s;
      events.push_back({{"ph", "X"},
                        {"name", event_name(step)},
                        {"cat", step_kind_name(step.kind)},
                        {"pid", 0},
                        {"tid", r},
                        {"ts", spans[r][s].begin_us},
                        {"dur", spans[r][s].end_us - spans[r][s].begin_us},
                        {"args", std::move(args)}});
      if (step.kind == StepKind::wait) add_arrow(plan, spans, r, s, ++arrows, &events);
    }
  }
  const Json json = {{"displayTimeUnit", "ns"},
                     {"otherData",
                      {{"collective", collective_name(plan.key.collective)},
                       {"algorithm", plan.algorithm},
                       {"part_bytes", plan.key.part_bytes}}},
                     {"traceEvents", std::move(events)}};
  return json.dump(1) + "\n";
}

}  // namespace penstock
