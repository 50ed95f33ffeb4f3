// Which plugins run where: kube-scheduler's merging of a profile's `plugins` into its defaults.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "penstock/descriptor/node_table.h"
#include "penstock/sched/scheduler_config_parts.h"

namespace penstock {
namespace {

struct Point {
  const char* field;
  PluginPoint point;
};

constexpr Point kPoints[] = {
    {"preEnqueue", kPreEnqueue},
    {"queueSort", kQueueSort},
    {"preFilter", kPreFilter},
    {"filter", kFilter},
    {"postFilter", kPostFilter},
    {"preScore", kPreScore},
    {"score", kScore},
    {"reserve", kReserve},
    {"permit", kPermit},
    {"preBind", kPreBind},
    {"bind", kBind},
    {"postBind", kPostBind},
};

struct Enabled {
  std::string name;
  std::int32_t weight = 0;  // 0: none given
};

struct PluginSet {
  std::vector<Enabled> enabled;
  std::set<std::string> disabled;  // "*" for all

  bool disables(const std::string& name) const {
    return disabled.count("*") > 0 || disabled.count(name) > 0;
  }
};

const Enabled* find_enabled(const std::vector<Enabled>& list, const std::string& name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Enabled& e) { return e.name == name; });
  return found == list.end() ? nullptr : &*found;
}

// `point` is 0 for multiPoint, where any plugin may stand.
Result<Enabled> read_enabled(const JsonField& item, std::uint32_t point) {
  PENSTOCK_TRY(expect_members(item, {"name", "weight"}));
  const JsonField name = item.member("name"), weight = item.member("weight");
  Enabled enabled;
  PENSTOCK_ASSIGN(enabled.name, name.text());
  const PluginKind* plugin = find_scheduler_plugin(enabled.name);
  if (plugin == nullptr) return unknown_plugin(name);
  if (point != 0 && (plugin->points & point) == 0) {
    std::vector<std::string> others;
    for (const PluginKind& other : scheduler_plugins()) {
      if ((other.points & point) != 0) others.emplace_back(other.name);
    }
    return name.wrong(
        fmt::format("a plugin that extends this point: {}",
                    others.empty() ? "there is none" : fmt::to_string(fmt::join(others, ", "))));
  }
  if (weight.present()) {
    PENSTOCK_ASSIGN(enabled.weight, required_integer(weight, 1, PENSTOCK_MAX_WEIGHT));
  }
  return enabled;
}

Result<PluginSet> read_set(const JsonField& field, std::uint32_t point) {
  PENSTOCK_TRY(expect_members(field, {"enabled", "disabled"}));
  PluginSet set;
  const JsonField enabled = field.member("enabled"), disabled = field.member("disabled");
  PENSTOCK_TRY(enabled.each([&](const JsonField& item) -> Status {
    PENSTOCK_ASSIGN(Enabled one, read_enabled(item, point));
    if (find_enabled(set.enabled, one.name) != nullptr) {
      const JsonField name = item.member("name");
      return name.wrong(fmt::format("each plugin once; {} stands here already", one.name));
    }
    set.enabled.push_back(std::move(one));
    return {};
  }));
  const auto read_disabled = [&set](const JsonField& item) -> Status {
    PENSTOCK_TRY(expect_members(item, {"name", "weight"}));
    const JsonField name = item.member("name");
    const Result<std::string> plugin = name.text();
    if (!plugin.ok()) return plugin.status();
    const std::string& text = plugin.value();
    if (text != "*" && find_scheduler_plugin(text) == nullptr) return unknown_plugin(name);
    if (!set.disabled.insert(text).second) {
      return name.wrong(fmt::format("each plugin once; {} stands here already", text));
    }
    return {};
  };
  PENSTOCK_TRY(disabled.each(read_disabled));
  return set;
}

// The default plugins in their order, those of the user in place of them, then the user's others.
std::vector<Enabled> merge_multi_point(const PluginSet& custom) {
  std::vector<Enabled> merged;
  for (const PluginKind& plugin : scheduler_plugins()) {
    const std::string name(plugin.name);
    if (custom.disables(name)) continue;
    const Enabled* mine = find_enabled(custom.enabled, name);
    merged.push_back(mine != nullptr ? *mine : Enabled{name, plugin.weight});
  }
  for (const Enabled& mine : custom.enabled) {
    if (find_enabled(merged, mine.name) == nullptr) merged.push_back(mine);
  }
  return merged;
}

// What runs at a point: the point's own plugins that multiPoint has too, in the point's order; then
// the rest of multiPoint; then the rest of the point's own.
std::vector<Enabled> plugins_at(const Point& point, const PluginSet& own,
                                const std::vector<Enabled>& multi_point) {
  const bool none = own.disabled.count("*") > 0;  // none of multiPoint
  std::vector<Enabled> first, middle, last;
  for (const Enabled& mine : own.enabled) {
    const bool in_both =
        !none && own.disabled.count(mine.name) == 0 && find_enabled(multi_point, mine.name);
    (in_both ? first : last).push_back(mine);
  }
  for (const Enabled& plugin : multi_point) {
    const bool extends = (find_scheduler_plugin(plugin.name)->points & point.point) != 0;
    if (!extends || own.disables(plugin.name) || find_enabled(own.enabled, plugin.name)) continue;
    middle.push_back(plugin);
  }
  first.insert(first.end(), middle.begin(), middle.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

bool has(const std::vector<Enabled>& list, const std::string& name) {
  return find_enabled(list, name) != nullptr;
}

// A filter or score whose preparation the user has disabled: upstream's fails then, ours has none.
void note_missing_preparation(const JsonField& field, PluginPoint preparation,
                              const std::vector<Enabled>& prepared,
                              const std::vector<Enabled>& runs, std::vector<std::string>* notes) {
  for (const Enabled& plugin : runs) {
    const PluginKind* kind = find_scheduler_plugin(plugin.name);
    if ((kind->points & preparation) == 0 || has(prepared, plugin.name)) continue;
    notes->push_back(fmt::format("{}: without {} has no effect: what follows it is enabled",
                                 field.where(), plugin.name));
  }
}

}  // namespace

const std::vector<PluginKind>& scheduler_plugins() {
  static const std::vector<PluginKind> kPlugins = {
      {"SchedulingGates", kPreEnqueue, 0, false, false},
      {"PrioritySort", kQueueSort, 0, false, false},
      {"NodeUnschedulable", kFilter, 0, true, false},
      {"NodeName", kFilter, 0, true, false},
      {"TaintToleration", kFilter | kPreScore | kScore, 3, true, false},
      {"NodeAffinity", kPreFilter | kFilter | kPreScore | kScore, 2, true, true},
      {"NodePorts", kPreFilter | kFilter, 0, true, false},
      {"NodeResourcesFit", kPreFilter | kFilter | kPreScore | kScore, 1, true, true},
      {"VolumeRestrictions", kPreFilter | kFilter, 0, false, false},
      {"NodeVolumeLimits", kPreFilter | kFilter, 0, false, false},
      {"VolumeBinding", kPreFilter | kFilter | kReserve | kPreBind | kPreScore | kScore, 0, false,
       true},
      {"VolumeZone", kPreFilter | kFilter, 0, false, false},
      {"PodTopologySpread", kPreFilter | kFilter | kPreScore | kScore, 2, true, true},
      {"InterPodAffinity", kPreFilter | kFilter | kPreScore | kScore, 2, true, true},
      {"DynamicResources", kPreEnqueue | kPreFilter | kFilter | kPostFilter | kReserve | kPreBind,
       0, false, true},
      {"DefaultPreemption", kPreEnqueue | kPostFilter, 0, false, true},
      {"NodeResourcesBalancedAllocation", kPreScore | kScore, 1, true, true},
      {"ImageLocality", kScore, 1, true, false},
      {"DefaultBinder", kBind, 0, false, false},
  };
  return kPlugins;
}

const PluginKind* find_scheduler_plugin(std::string_view name) {
  for (const PluginKind& plugin : scheduler_plugins()) {
    if (plugin.name == name) return &plugin;
  }
  return nullptr;
}

Status unknown_plugin(const JsonField& field) {
  std::vector<std::string> names;
  for (const PluginKind& plugin : scheduler_plugins()) names.emplace_back(plugin.name);
  PENSTOCK_ASSIGN(const std::string text, field.text());
  const std::vector<std::string> near = nearest_names(text, names, 3);
  return field.wrong(
      fmt::format("a plugin of kube-scheduler v1.34{}{}",
                  near.empty() ? "" : "; names like it: ", fmt::to_string(fmt::join(near, ", "))));
}

Status read_plugin_sets(const JsonField& plugins, SchedulerProfile* profile,
                        std::vector<std::string>* notes) {
  PENSTOCK_TRY(expect_members(
      plugins, {"multiPoint", "preEnqueue", "queueSort", "preFilter", "filter", "postFilter",
                "preScore", "score", "reserve", "permit", "preBind", "bind", "postBind"}));
  const JsonField multi_field = plugins.member("multiPoint");
  PENSTOCK_ASSIGN(const PluginSet multi, read_set(multi_field, 0));
  const std::vector<Enabled> multi_point = merge_multi_point(multi);
  std::map<PluginPoint, std::vector<Enabled>> at;
  for (const Point& point : kPoints) {
    const JsonField field = plugins.member(point.field);
    PENSTOCK_ASSIGN(const PluginSet own, read_set(field, point.point));
    at[point.point] = plugins_at(point, own, multi_point);
    for (const Enabled& plugin : own.enabled) {
      if (find_scheduler_plugin(plugin.name)->evaluated) continue;
      if (point.point != kFilter && point.point != kScore) continue;
      notes->push_back(fmt::format("{}: {} is not evaluated", field.where(), plugin.name));
    }
  }
  const JsonField sort = plugins.member("queueSort"), bind = plugins.member("bind");
  if (at[kQueueSort].size() != 1) return sort.wrong("one plugin: PrioritySort");
  if (at[kBind].empty()) return bind.wrong("a plugin that binds: DefaultBinder");
  const JsonField pre_filter = plugins.member("preFilter"), pre_score = plugins.member("preScore");
  note_missing_preparation(pre_filter, kPreFilter, at[kPreFilter], at[kFilter], notes);
  note_missing_preparation(pre_score, kPreScore, at[kPreScore], at[kScore], notes);

  for (const Enabled& plugin : at[kFilter]) {
    if (find_scheduler_plugin(plugin.name)->evaluated) profile->filters.push_back(plugin.name);
  }
  for (const Enabled& plugin : at[kScore]) {
    if (!find_scheduler_plugin(plugin.name)->evaluated) continue;
    profile->scores.push_back({plugin.name, std::max(plugin.weight, 1)});
  }
  return {};
}

}  // namespace penstock
