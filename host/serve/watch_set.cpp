#include "penstock/serve/watch_set.h"

#include "penstock/serve/live_cluster.h"

namespace penstock {

WatchSet::WatchSet(Api& api, WatchSink& sink, const WatchOptions& options,
                   const WatchRestart& restart) {
  for (const WatchedKind& kind : watched_kinds(options.preempts)) {
    WatchConfig config;
    config.kind = kind.kind;
    config.path = kind.path;
    config.field_selector = kind.field_selector;
    config.watch_seconds = options.watch_seconds;
    config.idle_ms = options.idle_ms;
    config.resync_ms = options.resync_ms;
    watches_.push_back(std::make_unique<Watch>(api, sink, std::move(config), restart));
  }
  for (const auto& watch : watches_) {
    threads_.emplace_back([this, one = watch.get()] { one->run(stop_); });
  }
}

void WatchSet::stop() {
  stop_.request();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace penstock
