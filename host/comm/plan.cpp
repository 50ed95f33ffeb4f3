#include "penstock/comm/plan.h"

#include <fmt/core.h>

#include <array>
#include <bit>

#include "penstock/comm/algorithm/algorithms.h"
#include "penstock/comm/plan_internal.h"
#include "penstock/descriptor/address.h"

namespace penstock {
namespace {

constexpr std::array<const char*, kCollectives> kNames = {
    "all_reduce", "broadcast", "reduce",  "all_gather", "reduce_scatter",
    "all_to_all", "gather",    "scatter", "send_recv",  "barrier"};

// One shot has every rank read (n - 1) parts, so that what counts as small shrinks with the ranks.
bool one_shot_suits(const PlanKey& key) {
  return key.part_bytes <= key.tuning.one_shot_bytes / key.topology.ranks;
}
bool direct_reduce_suits(const PlanKey& key) { return key.part_bytes < key.tuning.sharded_bytes; }

bool never(const PlanKey&) { return false; }

struct Entry {
  Collective collective;
  const char* name;
  const char* summary;
  void (*build)(PlanBuilder& builder);
  bool (*suits)(const PlanKey& key);  // null: always
  bool two_level = false;
};

// "auto" takes the first entry of the collective that suits.
constexpr Entry kEntries[] = {
    {Collective::all_reduce, "one_shot",
     "small parts: everybody reads all inputs and folds them; one signal of latency",
     algorithm::all_reduce_one_shot, one_shot_suits},
    {Collective::all_reduce, "two_phase",
     "large parts: everybody folds one shard, then collects the others' results",
     algorithm::all_reduce_two_phase, nullptr},
    {Collective::all_reduce, "two_level",
     "with groups: folds of shards inside each group, then over the groups, then collected inside",
     algorithm::all_reduce_two_level, nullptr, true},
    {Collective::broadcast, "direct", "the root writes once, the others follow chunk by chunk",
     algorithm::broadcast, nullptr},
    {Collective::broadcast, "two_level",
     "with groups: one rank of each follows the root, the others of its group follow that one",
     algorithm::broadcast_two_level, never, true},
    {Collective::reduce, "direct", "small parts: the root folds everything",
     algorithm::reduce_direct, direct_reduce_suits},
    {Collective::reduce, "sharded",
     "large parts: everybody folds one shard, and the root collects the results",
     algorithm::reduce_sharded, nullptr},
    {Collective::reduce, "two_level",
     "with groups: folds of shards inside each group, then over the groups in that of the root",
     algorithm::reduce_two_level, nullptr, true},
    {Collective::all_gather, "direct", "everybody writes its part once and reads all others",
     algorithm::all_gather, nullptr},
    {Collective::reduce_scatter, "direct",
     "everybody writes the parts of the others and folds its own", algorithm::reduce_scatter,
     nullptr},
    {Collective::reduce_scatter, "two_level",
     "with groups: folds of parts inside each group, then everybody folds its own over the groups",
     algorithm::reduce_scatter_two_level, nullptr, true},
    {Collective::all_to_all, "direct", "everybody writes a block for every other rank",
     algorithm::all_to_all, nullptr},
    {Collective::gather, "direct", "everybody writes its part, the root reads all",
     algorithm::gather, nullptr},
    {Collective::scatter, "direct", "the root writes a block for every other rank",
     algorithm::scatter, nullptr},
    {Collective::send_recv, "direct", "the sender writes chunks, the receiver follows",
     algorithm::send_recv, nullptr},
    {Collective::barrier, "direct", "everybody signals once and waits for all others",
     algorithm::barrier, nullptr},
};

bool is_auto(const PlanKey& key) { return key.algorithm.empty() || key.algorithm == "auto"; }

// The topology defines what a reduction is, and copies go with either.
bool serves(const Entry& entry, const Topology& topology) {
  if (entry.two_level) return topology.is_grouped();
  return !reduces(entry.collective) || !topology.is_grouped();
}

const Entry* find_entry(const PlanKey& key) {
  for (const Entry& entry : kEntries) {
    if (entry.collective != key.collective || !serves(entry, key.topology)) continue;
    if (is_auto(key) ? entry.suits == nullptr || entry.suits(key) : key.algorithm == entry.name) {
      return &entry;
    }
  }
  return nullptr;
}

Status check_topology(const PlanKey& key) {
  const Topology& topology = key.topology;
  if (topology.ranks < 1 || topology.ranks > kMaxRanks) {
    return error(Code::invalid_argument, "plan: ranks is {}, and must be 1..{}", topology.ranks,
                 kMaxRanks);
  }
  if (topology.payload_devices < 1 || topology.payload_devices > PENSTOCK_MAX_DEVICES) {
    return error(Code::invalid_argument, "plan: payload_devices is {}, and must be 1..{}",
                 topology.payload_devices, PENSTOCK_MAX_DEVICES);
  }
  if (topology.is_grouped() && topology.ranks % topology.group != 0) {
    return error(Code::invalid_argument, "plan: group is {}, and must divide ranks, {}",
                 topology.group, topology.ranks);
  }
  if (key.collective == Collective::send_recv && topology.ranks > 2) {
    return error(Code::invalid_argument, "plan: ranks is {}, and a lane of send_recv has 2",
                 topology.ranks);
  }
  if (has_root(key.collective) && key.root >= topology.ranks) {
    return error(Code::invalid_argument, "plan: root is {}, and must be below ranks, {}", key.root,
                 topology.ranks);
  }
  return {};
}

std::string define(const PlanKey& key) {
  const std::uint32_t last = key.topology.ranks - 1;
  const Topology& topology = key.topology;
  const std::string fold =
      topology.is_grouped()
          ? fmt::format(
                "left fold over {} groups, in order, of the left folds in rank order inside "
                "each group of {} ranks",
                topology.groups(), topology.group)
          : fmt::format("left fold in rank order over ranks 0..{}", last);
  switch (key.collective) {
    case Collective::all_reduce:
      return fmt::format("recv of every rank = {} of send", fold);
    case Collective::broadcast:
      return fmt::format("recv of every rank = send of rank {}", key.root);
    case Collective::reduce:
      return fmt::format("recv of rank {} = {} of send", key.root, fold);
    case Collective::all_gather:
      return "recv[q] of every rank = send of rank q";
    case Collective::reduce_scatter:
      return fmt::format("recv of rank r = {} of send[r]", fold);
    case Collective::all_to_all:
      return "recv[q] of rank r = send[r] of rank q";
    case Collective::gather:
      return fmt::format("recv[q] of rank {} = send of rank q", key.root);
    case Collective::scatter:
      return fmt::format("recv of rank r = send[r] of rank {}", key.root);
    case Collective::send_recv:
      return fmt::format("recv of rank {} = send of rank 0", last);
    case Collective::barrier:
      return "no rank leaves before every rank has entered";
  }
  return {};
}

}  // namespace

const char* collective_name(Collective collective) {
  const auto index = static_cast<std::size_t>(collective);
  return index < kNames.size() ? kNames[index] : "?";
}

Result<Collective> parse_collective(const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Collective>(i);
    names += i == 0 ? kNames[i] : fmt::format(", {}", kNames[i]);
  }
  return error(Code::not_found, "no collective is named \"{}\"; there are {}", name, names);
}

bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::gather || collective == Collective::scatter;
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

const char* step_kind_name(StepKind kind) {
  switch (kind) {
    case StepKind::copy:
      return "copy";
    case StepKind::reduce:
      return "reduce";
    case StepKind::signal:
      return "signal";
    case StepKind::wait:
      return "wait";
    case StepKind::reuse:
      return "reuse";
  }
  return "?";
}

std::vector<Algorithm> list_algorithms() {
  std::vector<Algorithm> list;
  for (const Entry& entry : kEntries) {
    list.push_back({entry.collective, entry.name, entry.summary, entry.two_level});
  }
  return list;
}

namespace plan_internal {

Status check_key(const PlanKey& key) {
  if (static_cast<int>(key.collective) >= kCollectives) {
    return error(Code::invalid_argument, "plan: collective is {}, and must be below {}",
                 static_cast<int>(key.collective), kCollectives);
  }
  PENSTOCK_TRY(check_topology(key));
  if (!std::has_single_bit(key.element_bytes) || key.element_bytes > PENSTOCK_CACHE_LINE) {
    return error(Code::invalid_argument,
                 "plan: element_bytes is {}, and must be a power of two up to {}",
                 key.element_bytes, PENSTOCK_CACHE_LINE);
  }
  if (key.part_bytes % key.element_bytes != 0 || key.part_bytes > kMaxPartBytes) {
    return error(Code::invalid_argument,
                 "plan: part_bytes is {}, and must be a multiple of element_bytes, {}, up to {}",
                 key.part_bytes, key.element_bytes, kMaxPartBytes);
  }
  PENSTOCK_TRY(check_tuning(key.tuning));
  if (key.collective == Collective::barrier && key.part_bytes != 0) {
    return error(Code::invalid_argument, "plan: part_bytes is {}, and a barrier has none",
                 key.part_bytes);
  }
  if (find_entry(key) == nullptr) {
    std::string names = "auto";
    for (const Entry& entry : kEntries) {
      if (entry.collective != key.collective || !serves(entry, key.topology)) continue;
      names += fmt::format(", {}", entry.name);
    }
    return error(Code::invalid_argument, "plan: algorithm is \"{}\", and {} has {}", key.algorithm,
                 collective_name(key.collective), names);
  }
  return {};
}

bool suits_inline(const PlanKey& key) {
  if (key.part_bytes == 0 || key.part_bytes > key.tuning.inline_bytes || key.inline_lines == 0 ||
      key.topology.ranks == 1) {
    return false;
  }
  PlanBuilder builder(key, PlanBuilder::Mode::layout, true);
  build(builder);
  return builder.most_lines() <= key.inline_lines;
}

std::string build(PlanBuilder& builder) {
  const PlanKey& key = builder.key();
  if (key.topology.ranks == 1) {
    algorithm::local(builder);
    return "local";
  }
  const Entry& entry = *find_entry(key);
  if (key.part_bytes > 0 || key.collective == Collective::barrier) entry.build(builder);
  return entry.name;
}

std::vector<std::uint64_t> thresholds(const PlanKey& key) {
  const auto above = [](std::uint64_t last) {
    return last / PENSTOCK_CACHE_LINE * PENSTOCK_CACHE_LINE + PENSTOCK_CACHE_LINE;
  };
  const Tuning& tuning = key.tuning;
  const std::uint64_t ranks = key.topology.ranks;
  // Chunks begin where a part, and where a shard, is large enough for them.
  return {above(tuning.chunk_bytes - 1), above((tuning.chunk_bytes - 1) * ranks),
          above(tuning.sharded_bytes - 1), above(tuning.one_shot_bytes / ranks)};
}

}  // namespace plan_internal

Result<std::shared_ptr<const Plan>> make_plan(const PlanKey& key) {
  PENSTOCK_TRY(plan_internal::check_key(key));
  PlanBuilder builder(key, PlanBuilder::Mode::steps, plan_internal::suits_inline(key));
  const std::string name = plan_internal::build(builder);
  std::shared_ptr<Plan> plan = builder.finish();
  plan->algorithm = name;
  plan->definition = define(key);
  return std::shared_ptr<const Plan>(std::move(plan));
}

PoolTraffic pool_traffic(const Plan& plan) {
  PoolTraffic traffic;
  for (const std::vector<Step>& steps : plan.ranks) {
    for (const Step& step : steps) {
      for (const Slice& slice : step.src) {
        if (slice.space == Space::block) traffic.read += slice.bytes;
      }
      for (const Slice& slice : step.dst) {
        if (slice.space == Space::block) traffic.written += slice.bytes;
      }
    }
  }
  return traffic;
}

}  // namespace penstock
