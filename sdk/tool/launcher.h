// Starts the ranks of a run on this machine, and sees them to their end.
#ifndef PENSTOCK_SDK_TOOL_LAUNCHER_H_
#define PENSTOCK_SDK_TOOL_LAUNCHER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::tool {

struct LaunchConfig {
  std::vector<std::string> command;  // at least the program; "penstock" is this very program
  std::uint32_t ranks = 1;
  // Set for every rank, beside PENSTOCK_RANK.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<int> cpus;    // rank r runs on the r-th, and round again; empty: where it likes
  bool tag_output = false;  // "[rank] " before each line
  std::uint32_t grace_s = 5;
  std::uint64_t timeout_s = 0;  // 0: none
};

// From its construction on, SIGINT, SIGTERM and SIGHUP are held back, so that what the caller has
// made so far is cleaned up; run() handles them. One per process; single-threaded.
class Launcher {
 public:
  Launcher();
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Starts the ranks, forwards their output line by line and SIGINT, SIGTERM and SIGHUP to them,
  // and returns when all have ended. The first that fails is named on standard error; the others
  // then have grace_s to end by themselves before they are terminated. Every rank leads a process
  // group of its own, of which nothing is left when this process ends, however it ends.
  // Returns 0, the exit status of the first rank that failed (128 + signal if one killed it),
  // 128 + the signal that this process got, 124 after timeout_s, or 2 if the command cannot be run.
  int run(const LaunchConfig& config);

 private:
  int signal_fd_ = -1;
};

}  // namespace penstock::tool
#endif
