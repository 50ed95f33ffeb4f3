#include "penstock/serve/watch.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/platform.h"
#include "penstock/sched/json_field.h"
#include "penstock/sched/kubernetes.h"

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::size_t kRemovedKept = 65536;
constexpr std::uint64_t kMs = 1000000;

std::string text_at(const json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const json& metadata_of(const json& object) {
  static const json kNone = json::object();
  if (!object.is_object()) return kNone;
  const auto found = object.find("metadata");
  return found != object.end() && found->is_object() ? *found : kNone;
}

// Versions are opaque by contract; those of every API server are numbers that grow, and only when
// both are is one known to be older.
std::optional<std::uint64_t> number_of(const std::string& version) {
  std::uint64_t number = 0;
  const char* end = version.data() + version.size();
  const auto [at, problem] = std::from_chars(version.data(), end, number);
  if (version.empty() || problem != std::errc() || at != end) return std::nullopt;
  return number;
}

bool is_older(const std::string& version, const std::string& than) {
  const auto a = number_of(version), b = number_of(than);
  return a && b && *a < *b;
}

Status expired(const std::string& what) { return {Code::out_of_range, what}; }

bool is_expired(const Status& status) { return status.code() == Code::out_of_range; }

}  // namespace

std::string object_key(const json& object) {
  const json& metadata = metadata_of(object);
  const std::string name = text_at(metadata, "name"), space = text_at(metadata, "namespace");
  return name.empty() || space.empty() ? name : space + "/" + name;
}

std::string object_version(const json& object) {
  return text_at(metadata_of(object), "resourceVersion");
}

Status WatchParser::feed(
    std::string_view bytes,
    const std::function<Status(const std::string& type, const json& object)>& on_event) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > line_bytes_) {
      return error(Code::invalid_argument, "an event is larger than {} bytes", line_bytes_);
    }
    line_ += part;
    if (end == std::string_view::npos) return {};
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    if (line.find_first_not_of(" \r\t") == std::string::npos) continue;
    PENSTOCK_ASSIGN(const json event, parse_json(line, "watch", kMaxKubernetesDepth));
    const std::string type = text_at(event, "type");
    const auto object = event.is_object() ? event.find("object") : event.end();
    if (type.empty() || object == event.end() || !object->is_object()) {
      return error(Code::invalid_argument, "a line is no event: it has no type or no object");
    }
    PENSTOCK_TRY(on_event(type, *object));
  }
  return {};
}

Watch::Watch(Api& api, WatchSink& sink, WatchConfig config, WatchRestart restart)
    : api_(api), sink_(sink), config_(std::move(config)), restart_(std::move(restart)) {}

bool Watch::is_stale(const std::string& key, const std::string& version) const {
  if (const auto known = versions_.find(key); known != versions_.end()) {
    return is_older(version, known->second);
  }
  const auto gone = removed_.find(key);
  return gone != removed_.end() && is_older(version, gone->second);
}

void Watch::put(const std::string& key, const json& object) {
  const std::string version = object_version(object);
  const auto known = versions_.find(key);
  // The same again (a repeated event, or a list of what is known), or something older.
  if (known != versions_.end() && known->second == version && !version.empty()) return;
  if (is_stale(key, version)) return;
  removed_.erase(key);
  versions_[key] = version;
  sink_.put(config_.kind, key, object);
}

void Watch::remove(const std::string& key, const std::string& version) {
  const auto known = versions_.find(key);
  if (known != versions_.end()) {
    if (is_older(version, known->second)) return;
    versions_.erase(known);
    sink_.remove(config_.kind, key);
  }
  if (version.empty()) return;
  if (removed_.insert_or_assign(key, version).second) removed_order_.push_back(key);
  while (removed_order_.size() > kRemovedKept) {
    removed_.erase(removed_order_.front());
    removed_order_.pop_front();
  }
}

Status Watch::list_page(const std::string& continued, std::map<std::string, std::string>* seen,
                        std::string* next, std::string* version) {
  std::string path = config_.path + "?limit=" + std::to_string(config_.page);
  if (!config_.field_selector.empty())
    path += "&fieldSelector=" + encode_url(config_.field_selector);
  if (!continued.empty()) path += "&continue=" + encode_url(continued);
  PENSTOCK_ASSIGN(const ApiReply reply, api_.call("GET", path, {}, "application/json"));
  if (reply.status == 410) return expired(api_message(reply));
  if (reply.status != 200) {
    return error(Code::io_error, "listing {}: the API server answers {}: {}", config_.path,
                 reply.status, api_message(reply));
  }
  PENSTOCK_ASSIGN(const json page, parse_json(reply.body, config_.path, kMaxKubernetesDepth));
  const auto items = page.is_object() ? page.find("items") : page.end();
  if (items == page.end() || (!items->is_array() && !items->is_null())) {
    return error(Code::io_error, "listing {}: the answer is no list", config_.path);
  }
  for (const json& item : *items) {
    const std::string key = object_key(item);
    if (key.empty()) continue;
    (*seen)[key] = object_version(item);
    put(key, item);
  }
  *next = text_at(metadata_of(page), "continue");
  *version = object_version(page);
  return {};
}

bool Watch::resync_is_due() const {
  return config_.resync_ms > 0 && Platform::host().now_ns() - listed_ns_ >= config_.resync_ms * kMs;
}

std::uint64_t Watch::watch_seconds() const {
  if (config_.resync_ms == 0) return config_.watch_seconds;
  return std::min<std::uint64_t>(config_.watch_seconds, (config_.resync_ms + 999) / 1000);
}

Status Watch::list(const StopFlag& stop) {
  std::map<std::string, std::string> seen;
  std::string next, version;
  do {
    if (stop.requested()) return error(Code::cancelled, "stopped");
    const std::string continued = std::exchange(next, {});
    PENSTOCK_TRY(list_page(continued, &seen, &next, &version));
  } while (!next.empty());
  std::vector<std::string> gone;
  for (const auto& [key, held] : versions_) {
    if (!seen.contains(key)) gone.push_back(key);
  }
  for (const std::string& key : gone) remove(key, version);
  version_ = version;
  listed_ns_ = Platform::host().now_ns();
  sink_.synced(config_.kind);
  sink_.heard(config_.kind);
  return {};
}

Status Watch::on_event(const std::string& type, const json& object) {
  const std::string version = object_version(object);
  heard_ = true;
  if (type == "ERROR") {
    const auto code = object.find("code");
    const std::string message = text_at(object, "message");
    if (code != object.end() && code->is_number_integer() && *code == 410) return expired(message);
    return error(Code::io_error, "the API server ends the watch of {}: {}", config_.path, message);
  }
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED" && type != "BOOKMARK") {
    return error(Code::invalid_argument, "an event of type {}, which is unknown", type);
  }
  if (type != "BOOKMARK") {
    const std::string key = object_key(object);
    if (key.empty())
      return error(Code::invalid_argument, "an event about an object without a name");
    if (type == "DELETED") {
      remove(key, version);
    } else {
      put(key, object);
    }
  }
  // The last in the order of the stream: what was reordered is then sent again rather than lost.
  if (!version.empty()) version_ = version;
  sink_.heard(config_.kind);
  return {};
}

Status Watch::follow(const StopFlag& stop) {
  std::string path = config_.path +
                     "?watch=1&allowWatchBookmarks=true&resourceVersion=" + encode_url(version_) +
                     "&timeoutSeconds=" + std::to_string(watch_seconds());
  if (!config_.field_selector.empty())
    path += "&fieldSelector=" + encode_url(config_.field_selector);
  WatchParser parser(config_.line_bytes);
  Status problem;
  // The stream ends at a stop, at an event that says so, and when a list is due.
  const auto on_data = [&](std::string_view bytes) {
    problem = parser.feed(bytes, [this](const std::string& type, const json& object) {
      return on_event(type, object);
    });
    return problem.ok() && !resync_is_due();
  };
  auto reply = api_.stream(path, config_.idle_ms, stop, on_data);
  if (!problem.ok()) return problem;
  if (!reply.ok()) return reply.status();
  if (reply.value().status == 410) return expired(api_message(reply.value()));
  if (reply.value().status != 200) {
    return error(Code::io_error, "watching {}: the API server answers {}: {}", config_.path,
                 reply.value().status, api_message(reply.value()));
  }
  return {};
}

void Watch::run(const StopFlag& stop) {
  std::uint64_t backoff_ms = 0;
  const auto restarted = [this](const char* reason) {
    if (restart_) restart_(config_.kind, reason);
  };
  while (!stop.requested()) {
    Status status;
    if (!version_.empty() && resync_is_due()) {
      restarted("resync");
      version_.clear();
    }
    heard_ = false;
    if (version_.empty()) status = list(stop);
    if (status.ok()) status = follow(stop);
    if (stop.requested()) return;
    if (status.ok() || heard_) backoff_ms = 0;
    if (is_expired(status)) {
      restarted("expired");
      log::info("{}: what was watched from is gone, listing again: {}", config_.path,
                status.message());
      version_.clear();
      if (backoff_ms == 0) {
        backoff_ms = config_.least_backoff_ms;
        continue;
      }
    } else if (status.ok()) {
      restarted("ended");
      if (heard_) continue;
    } else {
      restarted("broken");
      log::info("{}", status.message());
      // What cannot be read may have been anything.
      if (status.code() == Code::invalid_argument) version_.clear();
    }
    backoff_ms = std::clamp(backoff_ms * 2, config_.least_backoff_ms, config_.most_backoff_ms);
    if (stop.sleep_ms(backoff_ms)) return;
  }
}

}  // namespace penstock
