// penstock info: what this machine and this environment offer, and what in them is wrong.
#include <sys/statvfs.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "info_engines.h"
#include "penstock/base/env.h"
#include "penstock/base/memory_linux.h"
#include "penstock/comm/launch.h"
#include "penstock/comm/tuning_file.h"
#include "penstock/engine/choice.h"
#include "penstock/memory/pool.h"
#include "text.h"

namespace penstock::tool {
namespace {

using nlohmann::ordered_json;

ordered_json processor_json() {
  ordered_json out;
  out["cpus"] = Platform::host().cpu_count();
  out["memory_nodes"] = memory_nodes();
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (line.rfind("model name", 0) == 0) out["model"] = value;
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(value);
    out["features"] = ordered_json::array();
    for (std::string word; words >> word;) {
      for (const char* wanted : {"clflush", "clflushopt", "clwb", "avx2", "avx512f", "avx512_bf16",
                                 "avx512_fp16", "movdir64b"}) {
        if (word == wanted) out["features"].push_back(word);
      }
    }
    break;
  }
  return out;
}

ordered_json memory_json() {
  ordered_json out = ordered_json::array();
  struct statvfs info;
  if (::statvfs("/dev/shm", &info) == 0) {
    out.push_back({{"path", "/dev/shm"},
                   {"kind", "shared memory"},
                   {"bytes", std::uint64_t{info.f_blocks} * info.f_frsize},
                   {"free", std::uint64_t{info.f_bavail} * info.f_frsize},
                   {"huge_pages", huge_pages_of("/dev/shm")}});
  }
  for (const std::string& path : mount_points("hugetlbfs")) {
    if (::statvfs(path.c_str(), &info) != 0) continue;
    out.push_back({{"path", path},
                   {"kind", fmt::format("huge pages of {}", readable_bytes(info.f_frsize))},
                   {"bytes", std::uint64_t{info.f_blocks} * info.f_frsize},
                   {"free", std::uint64_t{info.f_bavail} * info.f_frsize}});
  }
  std::error_code failure;
  for (auto it = std::filesystem::directory_iterator("/sys/bus/dax/devices", failure);
       !failure && it != std::filesystem::directory_iterator(); it.increment(failure)) {
    std::uint64_t bytes = 0;
    std::ifstream(it->path() / "size") >> bytes;
    out.push_back({{"path", "/dev/" + it->path().filename().string()},
                   {"kind", "device DAX"},
                   {"bytes", bytes},
                   {"free", nullptr}});
  }
  return out;
}

template <typename T>
void add_problem(std::vector<std::string>& problems, const Result<T>& result) {
  if (!result.ok()) problems.push_back(result.status().message());
}

// A sentence for each variable whose value makes no sense.
std::vector<std::string> environment_problems() {
  using env::Id;
  std::vector<std::string> problems;
  add_problem(problems, env::bytes(Id::pool_bytes, kMinDeviceBytes, std::uint64_t{1} << 55));
  add_problem(problems, env::number(Id::pool_devices, 1, PENSTOCK_MAX_DEVICES));
  const auto coherence = parse_coherence(env::text(Id::coherence));
  if (!coherence.ok()) problems.push_back("PENSTOCK_COHERENCE: " + coherence.status().message());
  add_problem(problems, env::number(Id::host_id, 0, 15));
  const auto engine = make_engine(env::text(Id::engine), needs_of_collectives());
  if (!engine.ok()) problems.push_back("PENSTOCK_ENGINE: " + engine.status().message());
  add_problem(problems, env::number(Id::timeout_ms, 1, std::uint64_t{1} << 30));
  add_problem(problems, env::bytes(Id::block_bytes, PENSTOCK_CACHE_LINE, std::uint64_t{1} << 40));
  const std::string wait = env::text(Id::wait);
  if (wait != "auto" && wait != "spin" && wait != "yield") {
    problems.push_back("PENSTOCK_WAIT=" + wait +
                       " is not a way of waiting: use auto, spin or yield");
  }
  const std::string level = env::text(Id::log);
  bool known = false;
  for (const char* name : {"trace", "debug", "info", "warn", "error", "off"}) {
    known = known || level == name;
  }
  if (!known) {
    problems.push_back("PENSTOCK_LOG=" + level +
                       " is not a level: use trace, debug, info, warn, error or off");
  }
  if (env::is_set(Id::comm) && env::text(Id::comm).size() > 31) {
    problems.push_back("PENSTOCK_COMM=" + env::text(Id::comm) + " is too long: use 1..31 bytes");
  }
  if (env::is_set(Id::pool)) {
    const auto pool = Pool::map(Platform::host(), env::text(Id::pool));
    if (!pool.ok()) problems.push_back("PENSTOCK_POOL: " + pool.status().message());
  }
  add_problem(problems, detect_launch());
  add_problem(problems, tuning_in_force(Platform::host(), Coherence::hardware, 2));
  return problems;
}

ordered_json environment_json() {
  ordered_json out = ordered_json::array();
  for (const env::Variable& variable : env::variables()) {
    out.push_back({{"name", variable.name},
                   {"value", env::text(variable.id)},
                   {"origin", env::is_set(variable.id) ? "environment" : "default"},
                   {"meaning", variable.meaning}});
  }
  return out;
}

ordered_json launch_json() {
  auto launch = detect_launch();
  if (!launch.ok()) return nullptr;
  return {{"launcher", launch->launcher},
          {"rank", launch->rank},
          {"size", launch->size},
          {"local_rank", launch->local_rank},
          {"local_size", launch->local_size},
          {"job", launch->job}};
}

void print_info(const ordered_json& info) {
  std::printf("penstock %s\n\nprocessor\n  %s, %u CPUs for this process\n  %s\n",
              info["version"].get<std::string>().c_str(),
              info["processor"].value("model", "unknown").c_str(),
              info["processor"]["cpus"].get<unsigned>(),
              words_of(info["processor"].value("features", ordered_json::array())).c_str());
  std::printf("  coherence %s\n\nengines\n", info["coherence"].get<std::string>().c_str());
  print_engines(info);
  const std::size_t nodes = info["processor"]["memory_nodes"].size();
  std::printf("\nmemory%s\n", nodes > 1 ? fmt::format(", {} NUMA nodes", nodes).c_str() : "");
  for (const auto& memory : info["memory"]) {
    std::printf("  %s (%s): %s", memory["path"].get<std::string>().c_str(),
                memory["kind"].get<std::string>().c_str(),
                readable_bytes(memory["bytes"].get<std::uint64_t>()).c_str());
    if (!memory["free"].is_null()) {
      std::printf(", free %s", readable_bytes(memory["free"].get<std::uint64_t>()).c_str());
    }
    if (memory.contains("huge_pages")) {
      std::printf(", huge pages %s", memory["huge_pages"].get<std::string>().c_str());
    }
    std::printf("\n");
  }
  std::printf("\nlauncher\n");
  if (const auto& launch = info["launch"]; launch.is_null()) {
    std::printf("  cannot tell, see below\n");
  } else {
    std::printf("  %s, rank %u of %u\n", launch["launcher"].get<std::string>().c_str(),
                launch["rank"].get<unsigned>(), launch["size"].get<unsigned>());
  }
  std::printf("\nenvironment\n");
  for (const auto& variable : info["environment"]) {
    const std::string value = variable["value"].get<std::string>();
    std::printf("  %-21s %-12s %-11s %s\n", variable["name"].get<std::string>().c_str(),
                value.empty() ? "(unset)" : value.c_str(),
                variable["origin"].get<std::string>().c_str(),
                variable["meaning"].get<std::string>().c_str());
  }
  for (const auto& problem : info["problems"]) {
    std::printf("\nwrong: %s\n", problem.get<std::string>().c_str());
  }
}

int show_info(bool json) {
  ordered_json info;
  info["version"] = PENSTOCK_VERSION;
  info["processor"] = processor_json();
  info["coherence"] = env::text(env::Id::coherence);
  info["engines"] = engines_json();
  info["auto"] = auto_json();
  info["memory"] = memory_json();
  info["launch"] = launch_json();
  info["environment"] = environment_json();
  const std::vector<std::string> problems = environment_problems();
  info["problems"] = problems;
  if (json) {
    std::puts(info.dump(2, ' ', false, ordered_json::error_handler_t::replace).c_str());
  } else {
    print_info(info);
  }
  return problems.empty() ? kExitOk : kExitWrong;
}

}  // namespace

void add_info(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "info", "Show engines, memory and environment; exit status 1 if a variable is wrong");
  command->footer("Example: penstock info --json");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print it as JSON");
  command->callback([&context, json] { context.action = [json] { return show_info(*json); }; });
}

}  // namespace penstock::tool
