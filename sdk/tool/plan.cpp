// penstock plan: shows the steps of a collective without running it, and proves them right.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "penstock/base/env.h"
#include "penstock/comm/plan.h"
#include "penstock/comm/plan_checker.h"
#include "penstock/descriptor/descriptor.h"
#include "sizes.h"

namespace penstock::tool {
namespace {

using nlohmann::ordered_json;

struct PlanOptions {
  std::string collective;
  std::uint32_t ranks = 4;
  std::uint32_t devices = 2;
  std::uint32_t group = 0;
  std::uint64_t size = std::uint64_t{1} << 20;
  std::string type = "f32";
  std::uint32_t root = 0;
  bool in_place = false;
  std::string algorithm = "auto";
  std::uint64_t block_bytes = 0;  // 0: PENSTOCK_BLOCK_BYTES
  std::string format = "text";
  bool check = false;
  bool list = false;
};

int list_plans(const std::string& only) {
  for (const Algorithm& algorithm : list_algorithms()) {
    const char* const collective = collective_name(algorithm.collective);
    if (!only.empty() && only != collective) continue;
    std::printf("%-15s %-12s %s\n", collective, algorithm.name.c_str(), algorithm.summary.c_str());
  }
  return kExitOk;
}

// A call as the passes that a comm makes of it.
struct Passes {
  std::uint64_t part_bytes = 0;       // of the whole call
  std::uint64_t pass_part_bytes = 0;  // of all passes but the last
  std::uint64_t count = 1;
  std::shared_ptr<const Plan> first;
  std::shared_ptr<const Plan> tail;  // null unless the last pass is smaller
};

Result<Passes> make_passes(const PlanOptions& options) {
  PENSTOCK_ASSIGN(const Collective collective, parse_collective(options.collective));
  PENSTOCK_ASSIGN(const std::uint32_t type, parse_type(options.type));
  PlanKey key;
  key.collective = collective;
  key.topology.ranks = options.ranks;
  // One memory device is the fences' where there is more than one.
  key.topology.payload_devices = std::max(1u, options.devices - 1);
  key.topology.group = options.group;
  key.root = options.root;
  key.element_bytes = penstock_type_size(type);
  key.in_place = options.in_place;
  key.algorithm = options.algorithm;
  std::uint64_t rank_bytes = options.block_bytes;
  if (rank_bytes == 0) {
    PENSTOCK_ASSIGN(rank_bytes,
                    env::bytes(env::Id::block_bytes, PENSTOCK_CACHE_LINE, std::uint64_t{1} << 40));
  }
  Passes passes;
  const std::uint64_t count = count_of_size(collective, options.size, options.ranks, type);
  passes.part_bytes = count * key.element_bytes;
  // The comm halves the bytes per pass until the scratch fits into the pool; here it always does.
  key.part_bytes = passes.part_bytes;
  passes.pass_part_bytes = passes.part_bytes;
  if (key.part_bytes > 0) {
    PENSTOCK_ASSIGN(const std::uint64_t most,
                    pass_part_bytes(key, scratch_half_bytes(key.topology, rank_bytes), rank_bytes));
    passes.pass_part_bytes = std::min(most, key.part_bytes);
    passes.count = (key.part_bytes + most - 1) / most;
  }
  key.part_bytes = passes.pass_part_bytes;
  PENSTOCK_ASSIGN(passes.first, make_plan(key));
  const std::uint64_t rest = passes.part_bytes - (passes.count - 1) * passes.pass_part_bytes;
  if (rest != passes.pass_part_bytes) {
    key.part_bytes = rest;
    PENSTOCK_ASSIGN(passes.tail, make_plan(key));
  }
  return passes;
}

void print_text(const Passes& passes) {
  if (passes.count > 1) {
    std::printf("%llu passes of at most %llu bytes per part; the first:\n\n",
                static_cast<unsigned long long>(passes.count),
                static_cast<unsigned long long>(passes.pass_part_bytes));
  }
  std::fputs(plan_to_text(*passes.first).c_str(), stdout);
  if (passes.tail) {
    std::printf("\nthe last pass, of %llu bytes per part:\n\n",
                static_cast<unsigned long long>(passes.tail->key.part_bytes));
    std::fputs(plan_to_text(*passes.tail).c_str(), stdout);
  }
}

void print_json(const Passes& passes, const std::vector<std::string>* findings) {
  ordered_json out = {{"part_bytes", passes.part_bytes},
                      {"passes", passes.count},
                      {"pass_part_bytes", passes.pass_part_bytes},
                      {"plan", ordered_json::parse(plan_to_json(*passes.first))}};
  if (passes.tail) out["tail"] = ordered_json::parse(plan_to_json(*passes.tail));
  if (findings != nullptr) out["findings"] = *findings;
  std::puts(out.dump(2).c_str());
}

int show_plan(const PlanOptions& options) {
  if (!options.collective.empty()) {
    const auto collective = parse_collective(options.collective);
    if (!collective.ok()) return fail("plan", collective.status());
  }
  if (options.list) return list_plans(options.collective);
  if (options.collective.empty()) {
    return fail_usage("plan", "no COLLECTIVE given; see `penstock plan --help`");
  }
  const auto made = make_passes(options);
  if (!made.ok()) return fail("plan", made.status());
  const Passes& passes = made.value();

  std::vector<std::string> findings;
  if (options.check) {
    findings = check_plan(*passes.first);
    if (passes.tail) {
      for (const std::string& finding : check_plan(*passes.tail)) {
        findings.push_back("last pass: " + finding);
      }
    }
  }
  if (options.format == "json") {
    print_json(passes, options.check ? &findings : nullptr);
  } else if (options.format == "chrome") {
    std::puts(plan_to_chrome_trace(*passes.first).c_str());
  } else {
    print_text(passes);
    for (const std::string& finding : findings) std::printf("wrong: %s\n", finding.c_str());
    if (options.check && findings.empty()) std::printf("\nchecked: the plan is right\n");
  }
  return findings.empty() ? kExitOk : kExitWrong;
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("plan", "Show the steps of a collective, and check them");
  command->footer(
      "With several memory devices one holds the fences and the others carry payload.\n"
      "Example: penstock plan all_reduce --ranks 4 --devices 3 --size 1M --check");
  auto options = std::make_shared<PlanOptions>();
  command->add_option("COLLECTIVE", options->collective, "all_reduce, broadcast, reduce, ...")
      ->type_name("");
  add_number(*command, "-n,--ranks", options->ranks, 1, kMaxRanks, "Ranks of the comm");
  add_number(*command, "--devices", options->devices, 1, PENSTOCK_MAX_DEVICES,
             "Memory devices of the pool");
  add_number(*command, "--group", options->group, 0, kMaxRanks,
             "Ranks of a group, for reductions in two levels; 0: one level");
  add_size(*command, "--size", options->size, 0, std::uint64_t{1} << 50,
           "Bytes, as `penstock perf` counts them: of the vector, or of all ranks' parts", "1M");
  command->add_option("--type", options->type, "Element type")
      ->type_name("NAME")
      ->default_str("f32");
  add_number(*command, "--root", options->root, 0, kMaxRanks - 1, "Root of a rooted collective");
  command->add_flag("--in-place", options->in_place, "Send and receive buffer are the same memory");
  command->add_option("--algorithm", options->algorithm, "Name, or auto")
      ->type_name("NAME")
      ->default_str("auto");
  add_size(*command, "--block-bytes", options->block_bytes, PENSTOCK_CACHE_LINE,
           std::uint64_t{1} << 40, "Payload of one rank and pass", "PENSTOCK_BLOCK_BYTES");
  add_choice(*command, "--format", options->format, {"text", "json", "chrome"},
             "text, json, or chrome: a timeline for ui.perfetto.dev");
  command->add_flag("--check", options->check, "Prove the plan right; exit status 1 if it is not");
  command->add_flag("--list", options->list, "List the algorithms");
  command->callback(
      [&context, options] { context.action = [options] { return show_plan(*options); }; });
}

}  // namespace penstock::tool
