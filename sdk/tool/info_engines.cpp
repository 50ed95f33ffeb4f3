#include "info_engines.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "engine_list.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/choice.h"
#include "text.h"

namespace penstock::tool {
namespace {

using nlohmann::ordered_json;

// Names whose bit is set in `mask`.
std::vector<std::string> names_of(std::uint32_t mask, std::uint32_t count,
                                  const char* (*name)(std::uint32_t)) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((mask >> i & 1) != 0) names.emplace_back(name(i));
  }
  return names;
}

void add_capabilities(const Capabilities& can, ordered_json& out) {
  out["description"] = can.description;
  out["operations"] = names_of(can.opcodes, PENSTOCK_OP_COUNT, penstock_opcode_name);
  ordered_json reduce = ordered_json::object();
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    reduce[penstock_type_name(type)] =
        names_of(can.redops[type], PENSTOCK_REDOP_COUNT, penstock_redop_name);
  }
  out["reduce"] = std::move(reduce);
  out["max_sources"] = can.max_sources;
  out["max_destinations"] = can.max_destinations;
  out["max_bytes"] = can.max_bytes;
  out["max_rows"] = can.max_rows;
  out["host_memory"] = can.host_memory;
}

ordered_json engine_json(const ListedEngine& engine) {
  ordered_json out = {{"name", engine.info.name},
                      {"available", engine.info.available},
                      {"state", engine_state_name(engine.state)},
                      {"reason", engine.info.reason},
                      {"simulated", engine.info.simulated}};
  if (engine.info.available) add_capabilities(engine.info.capabilities, out);
  if (engine.variants.empty()) return out;
  out["variants"] = ordered_json::array();
  for (const ListedVariant& variant : engine.variants) {
    out["variants"].push_back({{"name", variant.name},
                               {"available", variant.state == EngineState::available},
                               {"state", engine_state_name(variant.state)},
                               {"reason", variant.reason},
                               {"simulated", variant.simulated}});
  }
  return out;
}

ordered_json choice_json(const EngineNeeds& needs) {
  const AutoChoice choice = choose_automatically(needs);
  ordered_json out = {{"engine", choice.first()}, {"reason", choice.reason}};
  out["candidates"] = ordered_json::array();
  for (const AutoCandidate& one : choice.candidates) {
    out["candidates"].push_back({{"name", one.name},
                                 {"copy_bytes_per_s", one.speed.copy},
                                 {"reduce_bytes_per_s", one.speed.reduce},
                                 {"decisions_per_s", one.speed.select},
                                 {"out", one.out}});
  }
  return out;
}

std::string text_of(const ordered_json& object, const char* key) {
  return object[key].get<std::string>();
}

void print_state(const ordered_json& one, int width) {
  const std::string reason = text_of(one, "reason");
  std::printf("%*s%-*s %s%s%s%s\n", width == 15 ? 2 : 4, "", width, text_of(one, "name").c_str(),
              text_of(one, "state").c_str(), one["simulated"].get<bool>() ? ", simulated" : "",
              reason.empty() ? "" : ": ", reason.c_str());
}

void print_capabilities(const ordered_json& engine) {
  std::printf("      operations %s\n", words_of(engine["operations"]).c_str());
  // Types that can do the same share a line.
  std::vector<std::pair<std::string, std::string>> lines;
  for (const auto& [type, redops] : engine["reduce"].items()) {
    const std::string able = redops.empty() ? "-" : words_of(redops);
    if (lines.empty() || lines.back().second != able) {
      lines.emplace_back(type, able);
    } else {
      lines.back().first += " " + type;
    }
  }
  for (const auto& [types, redops] : lines) {
    std::printf("      REDUCE %s: %s\n", types.c_str(), redops.c_str());
  }
  std::printf("      at most %u sources, %u destinations, %s an operand, %u rows\n",
              engine["max_sources"].get<unsigned>(), engine["max_destinations"].get<unsigned>(),
              readable_bytes(engine["max_bytes"].get<std::uint64_t>()).c_str(),
              engine["max_rows"].get<unsigned>());
}

void print_choice(const char* purpose, const ordered_json& choice) {
  std::printf("  auto takes %s for %s: %s\n", text_of(choice, "engine").c_str(), purpose,
              text_of(choice, "reason").c_str());
  for (const auto& one : choice["candidates"]) {
    const double copy = one["copy_bytes_per_s"].get<double>();
    const std::string out = text_of(one, "out");
    if (copy == 0 && out.empty()) continue;
    std::printf("      %-15s COPY %.2f GB/s, REDUCE %.2f GB/s, %.0f decisions/s%s%s\n",
                text_of(one, "name").c_str(), copy * 1e-9,
                one["reduce_bytes_per_s"].get<double>() * 1e-9,
                one["decisions_per_s"].get<double>(), out.empty() ? "" : "; out: ", out.c_str());
  }
}

}  // namespace

std::string words_of(const ordered_json& texts) {
  std::string words;
  for (const auto& text : texts) words += (words.empty() ? "" : " ") + text.get<std::string>();
  return words;
}

ordered_json engines_json() {
  ordered_json out = ordered_json::array();
  for (const ListedEngine& engine : listed_engines()) out.push_back(engine_json(engine));
  return out;
}

ordered_json auto_json() {
  return {{"collectives", choice_json(needs_of_collectives())},
          {"decisions", choice_json(needs_of_decisions())}};
}

void print_engines(const ordered_json& info) {
  for (const auto& engine : info["engines"]) {
    print_state(engine, 15);
    for (const auto& variant : engine.value("variants", ordered_json::array())) {
      print_state(variant, 16);
    }
    // What is known without making the engine; one that executes nothing by itself wraps another.
    if (engine["available"].get<bool>() && !engine["operations"].empty()) {
      print_capabilities(engine);
    }
  }
  print_choice("collectives", info["auto"]["collectives"]);
  print_choice("decisions", info["auto"]["decisions"]);
}

}  // namespace penstock::tool
