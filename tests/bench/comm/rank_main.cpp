#include "rank_main.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace penstock::bench {
namespace {

volatile std::sig_atomic_t g_ended = 0;

constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void wrong(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(2);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

double number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0)) {
    wrong(option + " '" + text + "' is not a number");
  }
  return value;
}

void parse_one(RankOptions& options, const std::string& name, const std::string& value) {
  if (name == "--ranks") {
    const double ranks = number(name, value);
    if (ranks < 1 || ranks > kMaxRanks) wrong("--ranks must be 1.." + std::to_string(kMaxRanks));
    options.ranks = static_cast<std::uint32_t>(ranks);
  } else if (name == "--collectives") {
    for (const std::string& word : split(value)) {
      const auto collective = parse_collective(word);
      if (!collective) wrong("there is no collective '" + word + "'");
      options.collectives.push_back(*collective);
    }
  } else if (name == "--types") {
    options.types.clear();
    for (const std::string& word : split(value)) {
      const auto type = parse_type(word);
      if (!type) wrong("there is no type '" + word + "'; use f32, bf16 or int8");
      options.types.push_back(*type);
    }
  } else if (name == "--sizes") {
    for (const std::string& word : split(value)) {
      options.sizes.push_back(static_cast<std::uint64_t>(number(name, word)));
    }
  } else if (name == "--samples") {
    options.measure.samples = std::max(1, static_cast<int>(number(name, value)));
  } else if (name == "--sample-ms") {
    options.measure.sample_ms = number(name, value);
  } else if (name == "--point-ms") {
    options.measure.point_ms = number(name, value);
  } else if (name == "--realtime") {
    options.realtime = value == "1";
  } else if (name == "--control") {
    options.control = value;
  } else if (name == "--out") {
    options.out = value;
  } else if (name == "--peer") {
    options.peer = value;
  } else if (name == "--config") {
    options.config = value;
  } else {
    wrong("unknown argument " + name);
  }
}

// The types in which a collective is measured: all for all_reduce, the first for the others.
bool is_measured(const RankOptions& options, Collective collective, Type type) {
  return collective == Collective::all_reduce || type == Type::f32 || options.types.size() == 1;
}

void write_row(std::FILE* out, const RankOptions& options, const Problem& problem,
               std::uint64_t bytes, const Row& row) {
  std::fprintf(out,
               R"({"peer": "%s", "config": "%s", "variant": "%s", "collective": "%s", )"
               R"("type": "%s", "ranks": %u, "bytes": %llu, "placement": "%s", )"
               R"("us": %.4f, "us_min": %.4f, "us_p25": %.4f, "us_p75": %.4f, )"
               R"("one_way_ns": %.1f, "samples": %zu, "clean": %zu, "right": %s})"
               "\n",
               options.peer.c_str(), options.config.c_str(), row.variant.c_str(),
               collective_name(problem.collective), type_name(problem.type), problem.ranks,
               static_cast<unsigned long long>(bytes),
               row.placement == Placement::near ? "near" : "far", row.us, row.us_min, row.us_p25,
               row.us_p75, row.one_way_ns, row.samples, row.clean, row.right ? "true" : "false");
  std::fflush(out);
}

// With more ranks than CPUs a library that spins would keep the rank that it waits for off the CPU,
// so that ranks get precedence only.
void become_realtime(bool oversubscribed) {
  sched_param parameter{};
  parameter.sched_priority = 10;
  const bool done = oversubscribed ? ::setpriority(PRIO_PROCESS, 0, -20) == 0
                                   : ::sched_setscheduler(0, SCHED_FIFO, &parameter) == 0;
  if (!done) wrong("cannot take precedence over others: --realtime needs root or CAP_SYS_NICE");
}

}  // namespace

void* private_memory(std::size_t bytes) {
  const std::size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* const memory = ::mmap(nullptr, rounded + kHugePage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) wrong("no memory for a buffer of " + std::to_string(bytes) + " bytes");
  const auto at =
      (reinterpret_cast<std::uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  void* const data = reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr)
  ::madvise(data, rounded, MADV_HUGEPAGE);
  std::memset(data, 0, rounded);
  return data;
}

std::uint64_t RankOptions::largest() const {
  std::uint64_t most = 4096;
  for (const std::uint64_t bytes : sizes) most = std::max(most, bytes);
  // Parts are rounded up to whole elements.
  return most + std::uint64_t{ranks} * 64;
}

RankOptions parse_rank_options(int argc, char** argv) {
  RankOptions options;
  if (argc % 2 != 1) wrong("arguments come in pairs: --name VALUE");
  for (int i = 1; i + 1 < argc; i += 2) parse_one(options, argv[i], argv[i + 1]);
  if (options.control.empty() || options.out.empty() || options.collectives.empty() ||
      options.sizes.empty()) {
    wrong("--control, --out, --collectives and --sizes are needed; `./run bench comm` gives them");
  }
  return options;
}

std::uint32_t fork_ranks(std::uint32_t ranks, void (*at_end)()) {
  std::vector<pid_t> children;
  // Whoever ends the program still has `at_end` run.
  struct sigaction ending {};
  ending.sa_handler = [](int) { g_ended = 1; };
  struct sigaction usual_term, usual_int;
  ::sigaction(SIGTERM, &ending, &usual_term);
  ::sigaction(SIGINT, &ending, &usual_int);
  const pid_t parent = ::getpid();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::sigaction(SIGTERM, &usual_term, nullptr);
      ::sigaction(SIGINT, &usual_int, nullptr);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) std::_Exit(2);
      return rank;
    }
    children.push_back(child);
  }
  int failed = 0;
  for (std::uint32_t left = ranks; left > 0;) {
    int status = 0;
    const bool ended = ::wait(&status) > 0;
    if (!ended && errno == ECHILD) break;
    const int code = !ended ? (g_ended != 0 ? 2 : 0) : WIFEXITED(status) ? WEXITSTATUS(status) : 2;
    if (code > 1) {
      for (const pid_t child : children) ::kill(child, SIGKILL);
    }
    failed = std::max(failed, code);
    if (ended) --left;
  }
  if (at_end != nullptr) at_end();
  std::exit(failed);
}

int run_rank(Peer& peer, const RankOptions& options) {
  allowed_cpus();
  Control control(options.control, peer.rank(), peer.size(), peer.has_helpers());
  MeasureOptions how = options.measure;
  how.pinned = !peer.has_helpers();
  if (how.pinned) pin_to(allowed_cpus()[peer.rank() % allowed_cpus().size()]);
  if (options.realtime) become_realtime(control.oversubscribed());
  ticks_per_ns();
  std::FILE* const out = peer.rank() == 0 ? std::fopen(options.out.c_str(), "a") : nullptr;
  if (peer.rank() == 0 && out == nullptr) wrong("cannot write " + options.out);
  Buffers buffers;
  buffers.send = peer.allocate(Buffer::send, options.largest());
  buffers.recv = peer.allocate(Buffer::recv, options.largest());
  buffers.original = private_memory(options.largest());
  const double empty_ticks = empty_call_ticks(control);
  int status = 0;
  for (const Collective collective : options.collectives) {
    for (const Type type : options.types) {
      if (!is_measured(options, collective, type)) continue;
      for (const std::uint64_t bytes : options.sizes) {
        if (collective == Collective::barrier && bytes != options.sizes[0]) continue;
        const std::uint64_t shown = collective == Collective::barrier ? 0 : bytes;
        const Problem problem = Problem::make(collective, type, options.ranks, bytes);
        for (const Row& row : measure(peer, control, problem, buffers, empty_ticks, how)) {
          write_row(out, options, problem, shown, row);
          if (!row.right) status = 1;
        }
      }
    }
  }
  if (out != nullptr) std::fclose(out);
  control.barrier();
  return status;
}

}  // namespace penstock::bench
