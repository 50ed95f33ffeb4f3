// How a region of dataflow runs in plain C++: its stages one after another, or, for tests of the
// streams' depths, each in a thread of its own.
#ifndef PENSTOCK_HLS_PLAIN_HLS_REGION_H_
#define PENSTOCK_HLS_PLAIN_HLS_REGION_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace penstock_hls_plain {

// Of the calling thread: whether the regions that it enters run concurrently.
inline bool& concurrent_flag() {
  thread_local bool flag = false;
  return flag;
}
inline bool concurrent() { return concurrent_flag(); }
inline void set_concurrent(bool value) { concurrent_flag() = value; }

// The most that each stream held, of all concurrent regions so far, and its depth.
struct Fill {
  std::size_t most = 0;
  std::size_t depth = 0;
};
struct Fills {
  std::mutex mutex;
  std::map<std::string, Fill> by_name;
};
inline Fills& fills() {
  static Fills all;
  return all;
}
inline void report_fill(const std::string& name, std::size_t most, int depth) {
  const std::lock_guard<std::mutex> lock(fills().mutex);
  Fill& fill = fills().by_name[name];
  fill.most = most > fill.most ? most : fill.most;
  fill.depth = static_cast<std::size_t>(depth);
}

inline void stream_check(bool holds, const char* name, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "hls::stream %s %s\n", name, what);
  std::abort();
}

// A stage that gets nowhere for this long never will: all stages wait for one another.
constexpr int kDeadlockSeconds = 120;
template <typename Holds>
void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, const char* name,
          Holds holds) {
  stream_check(changed.wait_for(lock, std::chrono::seconds(kDeadlockSeconds), holds), name,
               "blocks for ever: the region deadlocked");
}

class Region {
 public:
  Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  // The region ends when all of its stages have.
  ~Region() {
    for (std::thread& thread : threads_) thread.join();
  }
  void stage(const std::function<void()>& run) {
    if (concurrent())
      threads_.emplace_back(run);
    else
      run();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace penstock_hls_plain
#endif
