// The parts of the reader of scheduler_config.h, and what they share.
#ifndef PENSTOCK_SCHED_SCHEDULER_CONFIG_PARTS_H_
#define PENSTOCK_SCHED_SCHEDULER_CONFIG_PARTS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/sched/json_field.h"
#include "penstock/sched/scheduler_profile.h"

namespace penstock {

// Where kube-scheduler calls a plugin; a set of them is a mask.
enum PluginPoint : std::uint32_t {
  kPreEnqueue = 1u << 0,
  kQueueSort = 1u << 1,
  kPreFilter = 1u << 2,
  kFilter = 1u << 3,
  kPostFilter = 1u << 4,
  kPreScore = 1u << 5,
  kScore = 1u << 6,
  kReserve = 1u << 7,
  kPermit = 1u << 8,
  kPreBind = 1u << 9,
  kBind = 1u << 10,
  kPostBind = 1u << 11,
};

struct PluginKind {
  std::string_view name;
  std::uint32_t points;  // that it extends
  std::int32_t weight;   // by default; 0 for those that do not score
  bool evaluated;        // its filter or score has a part in Penstock's decisions
  bool has_args;
};

// kube-scheduler's plugins in the order in which they are enabled by default.
const std::vector<PluginKind>& scheduler_plugins();
// Null if there is none of the name.
const PluginKind* find_scheduler_plugin(std::string_view name);
// invalid_argument with the nearest names: "..., expected a plugin of kube-scheduler such as ...".
Status unknown_plugin(const JsonField& field);

// invalid_argument for a member of the object that is not in the list, with the nearest of it.
Status expect_members(const JsonField& object, std::initializer_list<std::string_view> known);
// The names that differ from `text` by least, at most `most` of them.
std::vector<std::string> nearest_names(std::string_view text, const std::vector<std::string>& names,
                                       std::size_t most);
// A whole number that has to be there.
Result<std::int32_t> required_integer(const JsonField& field, std::int32_t min, std::int32_t max);

// `plugins` of a profile: its filters and scores. Absent: kube-scheduler's.
Status read_plugin_sets(const JsonField& plugins, SchedulerProfile* profile,
                        std::vector<std::string>* notes);
// `pluginConfig[].args` of a plugin that exists.
Status read_plugin_args(std::string_view plugin, const JsonField& args, SchedulerProfile* profile);

}  // namespace penstock
#endif
