// What a test's models counted of their lines and cover points, in one file for each process.
#ifndef PENSTOCK_RTL_COVERAGE_SAVE_COVERAGE_H_
#define PENSTOCK_RTL_COVERAGE_SAVE_COVERAGE_H_

#include <verilated.h>

#ifdef PENSTOCK_RTL_COVERAGE
#include <unistd.h>
#include <verilated_cov.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#endif

namespace penstock::rtl {

#ifdef PENSTOCK_RTL_COVERAGE
namespace coverage {

// The counts of all models that this process had. They are written when it ends, as <pid>.dat in
// the format of verilator_coverage, into the folder that PENSTOCK_RTL_COVERAGE_DIR names; nowhere
// when it is not set. Thread-safe.
class Counts {
 public:
  ~Counts() {
    if (folder_ == nullptr || counts_.empty()) return;
    std::ofstream file(path(".dat"));
    file << "# SystemC::Coverage-3\n";
    for (const auto& [point, count] : counts_) file << point << ' ' << count << '\n';
  }
  void add(VerilatedContext& context, bool toggles) {
    if (folder_ == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    // The runtime gives its counts to a file only. Which instance it was does not matter.
    const std::string part = path(".part");
    context.coveragep()->write(part.c_str());
    std::ifstream file(part);
    for (std::string line; std::getline(file, line);) {
      const std::size_t end = line.rfind("' ");
      if (line.rfind("C '", 0) != 0 || end == std::string::npos) continue;
      std::string point = line.substr(0, end);
      if (!toggles && point.find("v_toggle/") != std::string::npos) continue;
      if (const std::size_t instance = point.rfind("\001h\002"); instance != std::string::npos)
        point.resize(instance);
      counts_[point + "'"] += std::stoull(line.substr(end + 2));
    }
    unlink(part.c_str());
    context.coveragep()->zero();
  }

 private:
  std::string path(const char* suffix) const {
    return std::string(folder_) + "/" + std::to_string(getpid()) + suffix;
  }

  const char* folder_ = std::getenv("PENSTOCK_RTL_COVERAGE_DIR");
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> counts_;
};

inline Counts& counts() {
  static Counts all;
  return all;
}

}  // namespace coverage
#endif

// Adds what the context's models counted. Call it while they are alive: their counters go with
// them. Without PENSTOCK_RTL_COVERAGE it does nothing.
inline void save_coverage([[maybe_unused]] VerilatedContext& context) {
#ifdef PENSTOCK_RTL_COVERAGE
  coverage::counts().add(context, true);
#endif
}

// Forgets which bits toggled. To be called after the first reset: until then registers leave their
// random state, and that is no toggle.
inline void forget_toggles([[maybe_unused]] VerilatedContext& context) {
#ifdef PENSTOCK_RTL_COVERAGE
  coverage::counts().add(context, false);
#endif
}

}  // namespace penstock::rtl

#endif
