// One watch for each kind of object that decisions depend on, each with its thread.
#ifndef PENSTOCK_SERVE_WATCH_SET_H_
#define PENSTOCK_SERVE_WATCH_SET_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "penstock/serve/watch.h"

namespace penstock {

// How each watch goes about it; see WatchConfig.
struct WatchOptions {
  std::uint32_t watch_seconds = 300;
  std::uint64_t idle_ms = 150000;
  std::uint64_t resync_ms = 0;
  bool preempts = false;  // budgets are watched, too
};

// Begins when it is made; stops and joins when it is destroyed. `api` and `sink` outlive it.
class WatchSet {
 public:
  WatchSet(Api& api, WatchSink& sink, const WatchOptions& options, const WatchRestart& restart);
  ~WatchSet() { stop(); }
  WatchSet(const WatchSet&) = delete;
  WatchSet& operator=(const WatchSet&) = delete;
  void stop();

 private:
  StopFlag stop_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::vector<std::thread> threads_;
};

}  // namespace penstock
#endif
