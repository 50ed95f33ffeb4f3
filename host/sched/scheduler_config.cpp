#include "penstock/sched/scheduler_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "penstock/sched/csv.h"
#include "penstock/sched/scheduler_config_parts.h"
#include "penstock/sched/yaml_document.h"

namespace penstock {
namespace {

constexpr std::string_view kApiVersion = "kubescheduler.config.k8s.io/v1";
constexpr std::string_view kKind = "KubeSchedulerConfiguration";
constexpr std::size_t kMaxProfiles = 64;

// How many characters have to be inserted, removed or replaced to make one out of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = (a[i - 1] | 0x20) == (b[j - 1] | 0x20);
      const std::size_t replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

Status expect_text(const JsonField& field, std::string_view expected) {
  PENSTOCK_ASSIGN(const std::string found, field.text());
  if (found != expected) return field.wrong(fmt::format("\"{}\"", expected));
  return {};
}

// Go's time.ParseDuration: numbers with units, "1m30s", "1.5h", "0". In milliseconds.
Result<std::int64_t> read_duration(const JsonField& field, std::int64_t absent) {
  if (!field.present()) return absent;
  const char* expected = "a duration such as 15s, 500ms or 1m30s, of at most 100h";
  constexpr double kMostMs = 100.0 * 3600 * 1000;
  PENSTOCK_ASSIGN(const std::string text, field.text());
  if (text == "0") return std::int64_t{0};
  double total = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    const std::string number(rest.substr(0, digits));
    if (digits == 0 || digits > 15 || number == "." ||
        std::count(number.begin(), number.end(), '.') > 1) {
      return field.wrong(expected);
    }
    rest.remove_prefix(digits);
    const std::size_t letters = std::min(rest.find_first_of("0123456789."), rest.size());
    const std::string_view unit = rest.substr(0, letters);
    rest.remove_prefix(letters);
    const double scale = unit == "h"    ? 3600e3
                         : unit == "m"  ? 60e3
                         : unit == "s"  ? 1e3
                         : unit == "ms" ? 1
                         : unit == "us" ? 1e-3
                         : unit == "ns" ? 1e-6
                                        : 0;
    if (scale == 0) return field.wrong(expected);
    total += std::stod(number) * scale;
  }
  if (text.empty() || total > kMostMs) return field.wrong(expected);
  return static_cast<std::int64_t>(total);
}

Status read_leader_election(const JsonField& field, LeaderElection* election) {
  PENSTOCK_TRY(
      expect_members(field, {"leaderElect", "leaseDuration", "renewDeadline", "retryPeriod",
                             "resourceLock", "resourceName", "resourceNamespace"}));
  const JsonField elect = field.member("leaderElect");
  if (elect.present()) {
    PENSTOCK_ASSIGN(election->elect, elect.boolean());
  }
  const JsonField lease = field.member("leaseDuration"), renew = field.member("renewDeadline"),
                  retry = field.member("retryPeriod"), lock = field.member("resourceLock");
  PENSTOCK_ASSIGN(election->lease_duration_ms, read_duration(lease, election->lease_duration_ms));
  PENSTOCK_ASSIGN(election->renew_deadline_ms, read_duration(renew, election->renew_deadline_ms));
  PENSTOCK_ASSIGN(election->retry_period_ms, read_duration(retry, election->retry_period_ms));
  if (lock.present()) PENSTOCK_TRY(expect_text(lock, "leases"));
  for (auto [name, text] : {std::pair("resourceName", &election->resource_name),
                            std::pair("resourceNamespace", &election->resource_namespace)}) {
    const JsonField member = field.member(name);
    PENSTOCK_ASSIGN(std::string value, member.text());
    if (!value.empty()) *text = std::move(value);
  }
  if (!election->elect) return {};
  if (election->retry_period_ms <= 0) return retry.wrong("a duration above 0");
  if (election->renew_deadline_ms <= election->retry_period_ms) {
    return renew.wrong(fmt::format("more than retryPeriod, {} ms", election->retry_period_ms));
  }
  if (election->lease_duration_ms <= election->renew_deadline_ms) {
    return lease.wrong(fmt::format("more than renewDeadline, {} ms", election->renew_deadline_ms));
  }
  return {};
}

void note_without_effect(const JsonField& field, const char* why, std::vector<std::string>* notes) {
  if (field.present()) notes->push_back(fmt::format("{} has no effect: {}", field.where(), why));
}

Status read_sampling(const JsonField& field, std::vector<std::string>* notes) {
  PENSTOCK_TRY(field.integer(0, 100).status());
  note_without_effect(field, "all nodes are always considered", notes);
  return {};
}

Status read_client_connection(const JsonField& field, std::vector<std::string>* notes) {
  PENSTOCK_TRY(
      expect_members(field, {"kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"}));
  for (const char* name : {"kubeconfig", "acceptContentTypes", "contentType"}) {
    const JsonField member = field.member(name);
    PENSTOCK_TRY(member.text().status());
  }
  const JsonField qps = field.member("qps"), burst = field.member("burst");
  if (qps.present() && !qps.json().is_number()) return qps.wrong("a number");
  PENSTOCK_TRY(burst.integer(0, INT32_MAX).status());
  note_without_effect(field, "the connection is given on the command line", notes);
  return {};
}

Status read_extenders(const JsonField& field) {
  std::size_t n = 0;
  PENSTOCK_TRY(field.each([&n](const JsonField&) -> Status {
    ++n;
    return {};
  }));
  if (n == 0) return {};
  return error(Code::unsupported,
               "{}: found {}, expected none: a decision is one request to an engine, and no other "
               "server is asked in the middle of it",
               field.where(), n);
}

Status read_backoff(const JsonField& root, SchedulerConfig* config) {
  const JsonField initial = root.member("podInitialBackoffSeconds"),
                  most = root.member("podMaxBackoffSeconds");
  constexpr std::int64_t kMostSeconds = std::int64_t{1} << 31;
  if (initial.present()) {
    PENSTOCK_ASSIGN(config->initial_backoff_seconds, initial.integer(1, kMostSeconds));
  }
  if (most.present()) {
    PENSTOCK_ASSIGN(config->max_backoff_seconds, most.integer(1, kMostSeconds));
  }
  if (config->max_backoff_seconds < config->initial_backoff_seconds) {
    return most.wrong(
        fmt::format("at least podInitialBackoffSeconds, {}", config->initial_backoff_seconds));
  }
  return {};
}

// ---- profiles ----

Status read_plugin_config(const JsonField& list, SchedulerProfile* profile) {
  std::set<std::string> seen;
  return list.each([&](const JsonField& item) -> Status {
    PENSTOCK_TRY(expect_members(item, {"name", "args"}));
    const JsonField name = item.member("name"), args = item.member("args");
    PENSTOCK_ASSIGN(const std::string plugin, name.text());
    if (find_scheduler_plugin(plugin) == nullptr) return unknown_plugin(name);
    if (!seen.insert(plugin).second) {
      return name.wrong(
          fmt::format("one configuration for each plugin; {} has one already", plugin));
    }
    return read_plugin_args(plugin, args, profile);
  });
}

Result<SchedulerProfile> read_profile(const JsonField& field, bool only,
                                      std::vector<std::string>* notes) {
  PENSTOCK_TRY(expect_members(
      field, {"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"}));
  SchedulerProfile profile;
  const JsonField name = field.member("schedulerName"), plugins = field.member("plugins"),
                  sampling = field.member("percentageOfNodesToScore"),
                  config = field.member("pluginConfig");
  if (name.present() || !only) {
    PENSTOCK_ASSIGN(profile.scheduler_name, name.text());
    if (profile.scheduler_name.empty()) {
      return name.wrong("a name (only a single profile may go without)");
    }
  }
  PENSTOCK_TRY(read_sampling(sampling, notes));
  PENSTOCK_TRY(read_plugin_sets(plugins, &profile, notes));
  PENSTOCK_TRY(read_plugin_config(config, &profile));
  return profile;
}

Status read_profiles(const JsonField& list, SchedulerConfig* config) {
  const std::size_t n =
      list.present() && list.json().is_array() ? list.json().size() : std::size_t{0};
  if (n > kMaxProfiles) {
    return error(Code::out_of_range, "{}: found {}, expected at most {}", list.where(), n,
                 kMaxProfiles);
  }
  PENSTOCK_TRY(list.each([&](const JsonField& item) -> Status {
    PENSTOCK_ASSIGN(SchedulerProfile profile, read_profile(item, n == 1, &config->notes));
    if (config->find_profile(profile.scheduler_name) != nullptr) {
      const JsonField name = item.member("schedulerName");
      return name.wrong("a name of its own; an earlier profile has this one");
    }
    config->profiles.push_back(std::move(profile));
    return {};
  }));
  if (config->profiles.empty()) config->profiles.push_back(SchedulerProfile::defaults());
  return {};
}

Status check_type(const JsonField& root) {
  if (!root.json().is_object()) return root.wrong("a KubeSchedulerConfiguration");
  const JsonField version = root.member("apiVersion"), kind = root.member("kind");
  PENSTOCK_ASSIGN(const std::string found, version.text());
  if (found != kApiVersion) {
    const bool older = found.starts_with("kubescheduler.config.k8s.io/");
    return version.wrong(
        fmt::format("{}{}", kApiVersion, older ? " (what came before it is no longer read)" : ""));
  }
  return expect_text(kind, kKind);
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view text, const std::vector<std::string>& names,
                                       std::size_t most) {
  text = text.substr(0, 100);
  std::vector<std::pair<std::size_t, std::string>> by_distance;
  for (const std::string& name : names) {
    const std::size_t far = distance(text, name);
    if (far <= std::max<std::size_t>(2, name.size() / 2)) by_distance.emplace_back(far, name);
  }
  std::stable_sort(by_distance.begin(), by_distance.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (const auto& [far, name] : by_distance) {
    if (nearest.size() == most) break;
    nearest.push_back(name);
  }
  return nearest;
}

Status expect_members(const JsonField& object, std::initializer_list<std::string_view> known) {
  return object.each_member([&known](const std::string& key, const JsonField& item) -> Status {
    if (std::find(known.begin(), known.end(), key) != known.end()) return {};
    const std::vector<std::string> names(known.begin(), known.end());
    const std::vector<std::string> near = nearest_names(key, names, 1);
    return error(Code::invalid_argument, "{}: there is no such field; {}", item.where(),
                 near.empty() ? fmt::format("there are {}", fmt::to_string(fmt::join(names, ", ")))
                              : fmt::format("did you mean {}", near.front()));
  });
}

Result<std::int32_t> required_integer(const JsonField& field, std::int32_t min, std::int32_t max) {
  if (!field.present()) return field.wrong(fmt::format("a whole number from {} to {}", min, max));
  PENSTOCK_ASSIGN(const std::int64_t value, field.integer(min, max));
  return static_cast<std::int32_t>(value);
}

const SchedulerProfile* SchedulerConfig::find_profile(std::string_view scheduler_name) const {
  for (const SchedulerProfile& profile : profiles) {
    if (profile.scheduler_name == scheduler_name) return &profile;
  }
  return nullptr;
}

SchedulerConfig SchedulerConfig::defaults() {
  SchedulerConfig config;
  config.profiles.push_back(SchedulerProfile::defaults());
  return config;
}

Result<SchedulerConfig> read_scheduler_config(const std::string& path) {
  PENSTOCK_ASSIGN(const std::string bytes, read_file(path, kMaxSchedulerConfigBytes));
  return parse_scheduler_config(bytes, path);
}

Result<SchedulerConfig> parse_scheduler_config(std::string_view bytes, const std::string& name) {
  YamlLimits limits;
  limits.bytes = kMaxSchedulerConfigBytes;
  PENSTOCK_ASSIGN(const nlohmann::json document, parse_yaml(bytes, name, limits));
  const JsonField root(document, name);
  PENSTOCK_TRY(check_type(root));
  PENSTOCK_TRY(expect_members(
      root,
      {"apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "enableProfiling",
       "enableContentionProfiling", "percentageOfNodesToScore", "podInitialBackoffSeconds",
       "podMaxBackoffSeconds", "profiles", "extenders", "delayCacheUntilActive"}));
  SchedulerConfig config;
  const JsonField parallelism = root.member("parallelism"),
                  election = root.member("leaderElection"), extenders = root.member("extenders"),
                  connection = root.member("clientConnection"), profiles = root.member("profiles"),
                  sampling = root.member("percentageOfNodesToScore");
  PENSTOCK_TRY(parallelism.integer(1, INT32_MAX).status());
  note_without_effect(parallelism, "the engine divides its work itself", &config.notes);
  PENSTOCK_TRY(read_sampling(sampling, &config.notes));
  for (const char* flag :
       {"enableProfiling", "enableContentionProfiling", "delayCacheUntilActive"}) {
    const JsonField field = root.member(flag);
    PENSTOCK_TRY(field.boolean().status());
    note_without_effect(field, "there is nothing of the kind to turn on or off", &config.notes);
  }
  PENSTOCK_TRY(read_leader_election(election, &config.leader_election));
  PENSTOCK_TRY(read_client_connection(connection, &config.notes));
  PENSTOCK_TRY(read_backoff(root, &config));
  PENSTOCK_TRY(read_extenders(extenders));
  PENSTOCK_TRY(read_profiles(profiles, &config));
  return config;
}

}  // namespace penstock
