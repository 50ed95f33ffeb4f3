#include "penstock/serve/leader.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/sched/csv.h"
#include "penstock/sched/json_field.h"
#include "penstock/sched/kubernetes.h"

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMs = 1000000;
constexpr std::int64_t kMostSeconds = 1 << 20;

std::string text_of(const json& lease, const char* key) {
  if (!lease.is_object()) return "";
  const auto spec = lease.find("spec");
  if (spec == lease.end() || !spec->is_object()) return "";
  const auto value = spec->find(key);
  return value != spec->end() && value->is_string() ? value->get<std::string>() : "";
}

std::int64_t number_of(const json& lease, const char* key) {
  if (!lease.is_object()) return 0;
  const auto spec = lease.find("spec");
  if (spec == lease.end() || !spec->is_object()) return 0;
  const auto value = spec->find(key);
  if (value == spec->end() || !value->is_number_integer()) return 0;
  const auto number = value->get<std::int64_t>();
  return number < 0 || number > kMostSeconds ? 0 : number;
}

}  // namespace

std::string micro_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::time_t seconds = us / 1000000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     us % 1000000);
}

std::string process_identity(Platform& platform) {
  std::string name = "penstock";
  if (auto host = read_file("/etc/hostname", 256); host.ok()) {
    name = host.value().substr(0, host.value().find('\n'));
  }
  return fmt::format("{}_{:016x}", name, platform.random());
}

Status check_leader_config(const LeaderConfig& config) {
  if (config.identity.empty() || config.lease_name.empty() || config.lease_namespace.empty()) {
    return error(Code::invalid_argument,
                 "leader election needs an identity and the lease's namespace and name");
  }
  // Waits between attempts vary by a fifth.
  if (config.lease_ms <= config.renew_ms || config.renew_ms <= config.retry_ms * 6 / 5 ||
      config.retry_ms == 0 || config.lease_ms % 1000 != 0) {
    return error(Code::invalid_argument,
                 "leader election with lease {} ms, renew deadline {} ms and retry period {} ms: "
                 "expected whole seconds of lease, longer than the deadline, and that longer than "
                 "1.2 retry periods",
                 config.lease_ms, config.renew_ms, config.retry_ms);
  }
  return {};
}

Leader::Leader(Api& api, Platform& platform, LeaderConfig config,
               std::function<void(bool)> on_change)
    : api_(api),
      platform_(platform),
      config_(std::move(config)),
      on_change_(std::move(on_change)) {}

std::string Leader::path() const {
  return "/apis/coordination.k8s.io/v1/namespaces/" + encode_url(config_.lease_namespace) +
         "/leases";
}

json Leader::spec(const std::string& holder, std::uint64_t duration_ms, const std::string& acquired,
                  std::int64_t transitions) const {
  return {{"holderIdentity", holder},
          {"leaseDurationSeconds", duration_ms / 1000},
          {"acquireTime", acquired},
          {"renewTime", micro_time()},
          {"leaseTransitions", transitions}};
}

void Leader::observe(const json& lease) {
  const auto spec = lease.find("spec");
  const std::string text = spec == lease.end() ? "" : spec->dump();
  const std::lock_guard lock(mutex_);
  if (text != observed_spec_ || observed_ns_ == 0) observed_ns_ = platform_.now_ns();
  observed_ = lease;
  observed_spec_ = text;
}

bool Leader::observed_is_valid() const {
  const std::uint64_t lease_ns =
      static_cast<std::uint64_t>(number_of(observed_, "leaseDurationSeconds")) * 1000 * kMs;
  return platform_.now_ns() < observed_ns_ + lease_ns;
}

std::string Leader::holder() const {
  const std::lock_guard lock(mutex_);
  return text_of(observed_, "holderIdentity");
}

std::int64_t Leader::transitions() const {
  const std::lock_guard lock(mutex_);
  return number_of(observed_, "leaseTransitions");
}

void Leader::became_leader(std::uint64_t started_ns) {
  // From before the request: the server may have acted at any time since.
  leads_until_ns_.store(started_ns + config_.renew_ms * kMs);
}

bool Leader::create(std::uint64_t started_ns) {
  const json lease = {
      {"apiVersion", "coordination.k8s.io/v1"},
      {"kind", "Lease"},
      {"metadata", {{"name", config_.lease_name}, {"namespace", config_.lease_namespace}}},
      {"spec", spec(config_.identity, config_.lease_ms, micro_time(), 0)}};
  const auto reply = api_.call("POST", path(), lease.dump());
  if (!reply.ok() || reply.value().status / 100 != 2) {
    log::debug("lease {}: not made: {}", config_.lease_name,
               reply.ok() ? api_message(reply.value()) : reply.status().message());
    return false;
  }
  const auto made = parse_json(reply.value().body, "lease", kMaxKubernetesDepth);
  observe(made.ok() && made.value().is_object() ? made.value() : lease);
  became_leader(started_ns);
  return true;
}

bool Leader::update(std::uint64_t started_ns) {
  json lease = observed_;
  const bool mine = text_of(lease, "holderIdentity") == config_.identity;
  const std::string acquired = mine ? text_of(lease, "acquireTime") : micro_time();
  const std::int64_t transitions = number_of(lease, "leaseTransitions") + (mine ? 0 : 1);
  // What others wrote beside these fields stays; resourceVersion makes the server refuse the whole
  // if anybody was faster.
  if (!lease["spec"].is_object()) lease["spec"] = json::object();
  lease["spec"].update(spec(config_.identity, config_.lease_ms, acquired, transitions));
  const auto reply = api_.call("PUT", path() + "/" + encode_url(config_.lease_name), lease.dump());
  if (!reply.ok() || reply.value().status / 100 != 2) {
    log::debug("lease {}: not written: {}", config_.lease_name,
               reply.ok() ? api_message(reply.value()) : reply.status().message());
    return false;
  }
  const auto written = parse_json(reply.value().body, "lease", kMaxKubernetesDepth);
  observe(written.ok() && written.value().is_object() ? written.value() : lease);
  became_leader(started_ns);
  return true;
}

bool Leader::try_acquire_or_renew() {
  const std::uint64_t started = platform_.now_ns();
  const auto reply = api_.call("GET", path() + "/" + encode_url(config_.lease_name));
  if (!reply.ok()) {
    log::debug("lease {}: {}", config_.lease_name, reply.status().message());
    return false;
  }
  if (reply.value().status == 404) return create(started);
  const auto lease = parse_json(reply.value().body, "lease", kMaxKubernetesDepth);
  if (reply.value().status != 200 || !lease.ok() || !lease.value().is_object()) {
    log::debug("lease {}: the API server answers {}: {}", config_.lease_name, reply.value().status,
               api_message(reply.value()));
    return false;
  }
  observe(lease.value());
  const std::string held_by = holder();
  if (!held_by.empty() && held_by != config_.identity && observed_is_valid()) return false;
  return update(started);
}

void Leader::release() {
  if (holder() != config_.identity || !leads()) return;
  leads_until_ns_.store(0);
  json lease = observed_;
  // One second, as an empty holder's lease is anybody's.
  lease["spec"].update(
      spec("", 1000, text_of(lease, "acquireTime"), number_of(lease, "leaseTransitions")));
  const auto reply = api_.call("PUT", path() + "/" + encode_url(config_.lease_name), lease.dump());
  if (!reply.ok()) log::info("lease {}: {}", config_.lease_name, reply.status().message());
}

void Leader::run(const StopFlag& stop) {
  bool led = false;
  while (!stop.requested()) {
    try_acquire_or_renew();
    const bool now = leads();
    if (now != led) {
      log::info("lease {}/{}: {}", config_.lease_namespace, config_.lease_name,
                now ? "this process leads" : "lost; held by '" + holder() + "'");
      led = now;
      if (on_change_) on_change_(now);
    }
    // Without the lease up to a fifth longer, so that those who wait do not ask in step.
    const std::uint64_t more = led ? 0 : platform_.random() % (config_.retry_ms / 5 + 1);
    const std::uint64_t end = platform_.now_ns() + (config_.retry_ms + more) * kMs;
    while (!stop.requested() && platform_.now_ns() < end) {
      platform_.sleep_ns(std::min<std::uint64_t>(config_.retry_ms, 50) * kMs);
      // The loss of a lease is told when it happens, not at the next attempt.
      if (led && !leads()) break;
    }
  }
  release();
  if (led && on_change_) on_change_(false);
}

}  // namespace penstock
