#include "penstock/comm/launch.h"

#include <charconv>
#include <optional>

#include "penstock/base/env.h"
#include "penstock/base/platform.h"

namespace penstock {
namespace {

constexpr std::size_t kMaxJob = 48;

// The variables in which a launcher says who a process is. The local ones may be missing: then the
// launcher tells of one host only.
struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr Names kNames[] = {
    {"penstock", "PENSTOCK_RANK", "PENSTOCK_SIZE", "", ""},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""},
};

// Unset and empty are the same.
std::optional<std::string> read(const char* name) {
  std::optional<std::string> value;
  if (*name != '\0') value = env::foreign(name);
  if (value && value->empty()) value.reset();
  return value;
}

Result<std::uint32_t> parse(const char* name, const std::string& text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end) {
    return error(Code::invalid_argument, "{}={} is not a number from 0 to 4294967295", name, text);
  }
  return value;
}

// A rank and how many there are. No value: neither is set.
struct Place {
  std::uint32_t rank;
  std::uint32_t size;
};

Result<std::optional<Place>> read_place(const char* launcher, const char* rank_name,
                                        const char* size_name) {
  const auto rank = read(rank_name);
  const auto size = read(size_name);
  if (!rank && !size) return std::optional<Place>();
  if (!rank || !size) {
    return error(Code::invalid_argument, "{}={} is set and {} is not: {} sets both",
                 rank ? rank_name : size_name, rank ? *rank : *size, rank ? size_name : rank_name,
                 launcher);
  }
  Place place{};
  PENSTOCK_ASSIGN(place.rank, parse(rank_name, *rank));
  PENSTOCK_ASSIGN(place.size, parse(size_name, *size));
  if (place.rank >= place.size) {
    return error(Code::invalid_argument, "{}={} must be below {}={}", rank_name, place.rank,
                 size_name, place.size);
  }
  return std::optional<Place>(place);
}

// Slurm lists the tasks of its nodes like "2(x3),1"; 0 if the list does not tell about this one.
std::uint32_t slurm_local_size() {
  const auto list = read("SLURM_STEP_TASKS_PER_NODE");
  const auto node_text = read("SLURM_NODEID");
  if (!list || !node_text) return 0;
  const Result<std::uint32_t> node = parse("SLURM_NODEID", *node_text);
  if (!node.ok()) return 0;
  std::uint64_t nodes_before = 0;
  const char* at = list->data();
  const char* const end = at + list->size();
  while (at != end) {
    std::uint32_t tasks = 0;
    std::uint32_t repeat = 1;
    auto parsed = std::from_chars(at, end, tasks);
    if (parsed.ec != std::errc()) return 0;
    at = parsed.ptr;
    if (end - at >= 2 && at[0] == '(' && at[1] == 'x') {
      parsed = std::from_chars(at + 2, end, repeat);
      if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != ')') return 0;
      at = parsed.ptr + 1;
    }
    nodes_before += repeat;
    if (node.value() < nodes_before) return tasks;
    if (at != end && *at++ != ',') return 0;
  }
  return 0;
}

Status read_local(const Names& names, Launch* launch) {
  launch->local_rank = launch->rank;
  launch->local_size = launch->size;
  if (const auto text = read(names.local_rank)) {
    PENSTOCK_ASSIGN(launch->local_rank, parse(names.local_rank, *text));
    if (const auto size = read(names.local_size)) {
      PENSTOCK_ASSIGN(launch->local_size, parse(names.local_size, *size));
    } else if (const std::uint32_t tasks = slurm_local_size();
               tasks > 0 && launch->launcher == "slurm") {
      launch->local_size = tasks;
    }
  }
  if (launch->local_rank >= launch->local_size || launch->local_size > launch->size) {
    return error(Code::invalid_argument,
                 "{} says that this is rank {} of {} on this host, and rank {} of {} of the job",
                 launch->launcher, launch->local_rank, launch->local_size, launch->rank,
                 launch->size);
  }
  return {};
}

// A field of /proc/self/status, such as "PPid:" or "Uid:" (the first of its numbers).
std::string own_status(const std::string& field) {
  auto file = Platform::host().open("/proc/self/status", OpenMode::read_only);
  if (!file.ok()) return "0";
  std::string text(4096, '\0');
  const auto bytes = file.value()->read_at(0, text.data(), text.size());
  text.resize(bytes.ok() ? bytes.value() : 0);
  const std::size_t at = text.find("\n" + field);
  if (at == std::string::npos) return "0";
  const std::size_t begin = text.find_first_of("0123456789", at);
  if (begin == std::string::npos) return "0";
  return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

// What the ranks of a run have in common, and other runs have not. Without anything better it is
// the process that started them.
std::string job_of(const std::string& launcher) {
  if (const auto name = read("PENSTOCK_COMM")) return *name;
  if (launcher == "penstock") return "world";
  if (launcher == "torchrun") {
    const auto run = read("TORCHELASTIC_RUN_ID");
    const auto port = read("MASTER_PORT");
    if (run && port) return *run + "-" + *port;
    if (run || port) return "torchrun-" + (run ? *run : *port);
  } else if (launcher == "openmpi") {
    for (const char* name : {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"}) {
      if (const auto id = read(name)) return "openmpi-" + *id;
    }
  } else if (launcher == "mpich") {
    if (const auto id = read("PMI_JOBID")) return "mpich-" + *id;
  } else if (launcher == "slurm") {
    return "slurm-" + read("SLURM_JOB_ID").value_or("0") + "." +
           read("SLURM_STEP_ID").value_or("0");
  }
  return launcher + "-" + own_status("PPid:");
}

// FNV-1a.
std::uint32_t hash(const std::string& text) {
  std::uint32_t value = 2166136261u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16777619u;
  return value;
}

// To a part of a file name. Names that would become equal differ in their last eight digits.
std::string sanitise(const std::string& job) {
  std::string name = job;
  for (char& c : name) {
    const bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!is_good) c = '_';
  }
  if (name == job && name.size() <= kMaxJob) return name;
  return fmt::format("{}-{:08x}", name.substr(0, kMaxJob - 9), hash(job));
}

}  // namespace

Result<Launch> detect_launch() {
  for (const Names& names : kNames) {
    // A batch script has Slurm's variables as well, and is no rank.
    if (names.launcher == std::string("slurm") && !read("SLURM_STEP_ID")) continue;
    PENSTOCK_ASSIGN(const std::optional<Place> place,
                    read_place(names.launcher, names.rank, names.size));
    if (!place) continue;
    Launch launch;
    launch.launcher = names.launcher;
    launch.rank = place->rank;
    launch.size = place->size;
    PENSTOCK_TRY(read_local(names, &launch));
    launch.job = sanitise(job_of(launch.launcher));
    return launch;
  }
  Launch alone;
  alone.launcher = "none";
  return alone;
}

std::string default_pool_spec(const Launch& launch) {
  return fmt::format("/dev/shm/penstock-{}-{}", own_status("Uid:"), launch.job);
}

}  // namespace penstock
