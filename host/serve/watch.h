// List and watch of one kind of object: keeps a sink equal to what an API server holds. A watch
// that breaks is resumed from the last version that was seen; when the server no longer has that
// version (410), everything is listed anew and only what differs goes to the sink.
#ifndef PENSTOCK_SERVE_WATCH_H_
#define PENSTOCK_SERVE_WATCH_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "penstock/base/status.h"
#include "penstock/serve/api_client.h"

namespace penstock {

// Where objects go. Called by the thread of the watch; several watches may share one.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // `key`: "namespace/name", or "name" for what has no namespace. An object that cannot be read is
  // the sink's to report; the watch goes on.
  virtual void put(const std::string& kind, const std::string& key,
                   const nlohmann::json& object) = 0;
  virtual void remove(const std::string& kind, const std::string& key) = 0;
  // Everything that a list held has been put.
  virtual void synced(const std::string& kind) = 0;
  // The server has spoken: what the sink holds is as of now.
  virtual void heard(const std::string& kind) = 0;
};

// Why a watch began again, for metrics: "ended", "broken", "expired" or "resync".
using WatchRestart = std::function<void(const std::string& kind, const std::string& reason)>;

struct WatchConfig {
  std::string kind;                      // "Pod"
  std::string path;                      // "/api/v1/pods"
  std::string field_selector;            // "" for none
  std::uint32_t page = 500;              // objects of one list request
  std::uint32_t watch_seconds = 300;     // asked of the server; it ends a watch after that
  std::uint64_t idle_ms = 150000;        // bookmarks come about once a minute
  std::uint64_t resync_ms = 0;           // a list at least this often; 0: only when needed
  std::uint64_t least_backoff_ms = 200;  // after a failure, doubled up to the other
  std::uint64_t most_backoff_ms = 30000;
  std::size_t line_bytes = 64 << 20;  // most of one event
};

// Events of a watch from its bytes: one JSON object a line.
class WatchParser {
 public:
  explicit WatchParser(std::size_t line_bytes) : line_bytes_(line_bytes) {}
  // Calls `on_event` for every line that is complete. invalid_argument for a line that is no event;
  // what came after it is dropped.
  Status feed(
      std::string_view bytes,
      const std::function<Status(const std::string& type, const nlohmann::json& object)>& on_event);

 private:
  const std::size_t line_bytes_;
  std::string line_;
};

// One thread runs it.
class Watch {
 public:
  Watch(Api& api, WatchSink& sink, WatchConfig config, WatchRestart restart = {});
  // Until a stop. Failures are logged, and tried again.
  void run(const StopFlag& stop);

 private:
  // Lists everything, in pages. `expired` if a page's mark was too old.
  Status list(const StopFlag& stop);
  Status list_page(const std::string& continued, std::map<std::string, std::string>* seen,
                   std::string* next, std::string* version);
  // Watches until it ends; ok when the server ended it in order.
  Status follow(const StopFlag& stop);
  Status on_event(const std::string& type, const nlohmann::json& object);
  void put(const std::string& key, const nlohmann::json& object);
  void remove(const std::string& key, const std::string& version);
  bool resync_is_due() const;
  std::uint64_t watch_seconds() const;
  bool is_stale(const std::string& key, const std::string& version) const;

  Api& api_;
  WatchSink& sink_;
  const WatchConfig config_;
  const WatchRestart restart_;
  std::map<std::string, std::string> versions_;  // of what the sink holds, by key
  std::map<std::string, std::string> removed_;   // the version at which a key went; bounded
  std::deque<std::string> removed_order_;
  std::string version_;  // "" : list
  std::uint64_t listed_ns_ = 0;
  bool heard_ = false;  // since the watch began
};

// "namespace/name" or "name"; "" without a name.
std::string object_key(const nlohmann::json& object);
std::string object_version(const nlohmann::json& object);

}  // namespace penstock
#endif
