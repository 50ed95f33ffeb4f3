#include "penstock/engine/simd_fgd.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

constexpr std::size_t kMilliValues = 1001;

bool is_set(const TableView& table, std::uint16_t column, std::uint32_t row) {
  return ((table.bit_column(column)[row / 64] >> (row % 64)) & 1) != 0;
}

}  // namespace

void FgdTables::add_group(std::uint16_t model, const std::vector<penstock_typical>& typical) {
  Group group;
  group.model = model;
  std::vector<std::uint32_t> millis;
  for (const penstock_typical& task : typical) {
    group.requests.push_back(task.request);
    millis.push_back(task.gpu_milli);
  }
  const auto sort_unique = [](auto* list) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  };
  sort_unique(&group.requests);
  sort_unique(&millis);
  group.milli_ranks = static_cast<std::uint32_t>(millis.size()) + 1;
  for (std::uint32_t milli = 0; milli < kMilliValues; milli++) {
    const auto below = std::upper_bound(millis.begin(), millis.end(), milli) - millis.begin();
    group.milli_rank.push_back(static_cast<std::uint16_t>(below));
  }
  group.weight.assign((group.requests.size() + 1) * group.milli_ranks, 0);
  for (const penstock_typical& task : typical) {
    const auto at = std::lower_bound(group.requests.begin(), group.requests.end(), task.request) -
                    group.requests.begin();
    for (std::size_t r = static_cast<std::size_t>(at) + 1; r <= group.requests.size(); r++)
      for (std::uint32_t m = group.milli_rank[task.gpu_milli]; m < group.milli_ranks; m++)
        group.weight[r * group.milli_ranks + m] += task.weight;
  }
  groups_.push_back(std::move(group));
}

void FgdTables::build(const penstock_program& program) {
  list_.assign(program.typical, program.typical + program.n_typical);
  total_ = 0;
  groups_.clear();
  several_.clear();
  several_model_.clear();
  models_.assign(1, 0);
  for (const penstock_typical& task : list_)
    if (std::find(models_.begin(), models_.end(), task.model) == models_.end())
      models_.push_back(task.model);
  for (const std::uint16_t model : models_) {
    std::vector<penstock_typical> single;
    for (const penstock_typical& task : list_)
      if (task.model == model && task.gpu_count == 1) single.push_back(task);
    add_group(model, single);
  }
  for (const penstock_typical& task : list_) {
    total_ += task.weight;
    if (task.gpu_count < 2) continue;
    several_.push_back(task);
    several_model_.push_back(static_cast<std::uint16_t>(
        std::find(models_.begin(), models_.end(), task.model) - models_.begin()));
  }
}

const FgdTables& FgdTables::of(const penstock_program& program) {
  thread_local FgdTables tables;
  const std::size_t n = program.n_typical;
  if (tables.groups_.empty() || tables.list_.size() != n ||
      (n != 0 && std::memcmp(tables.list_.data(), program.typical, n * sizeof(penstock_typical))))
    tables.build(program);
  return tables;
}

std::int64_t FgdTables::fragmentation(const FgdRow& state,
                                      const std::uint8_t* model_is_here) const {
  std::int64_t free = 0;
  for (std::uint32_t s = 0; s < state.n_gpus; s++) free += state.free_milli[s];
  std::int64_t useful = 0;
  for (std::size_t i = 0; i < groups_.size(); i++) {
    if (!model_is_here[i]) continue;
    const Group& group = groups_[i];
    const auto rank = std::upper_bound(group.requests.begin(), group.requests.end(), state.left) -
                      group.requests.begin();
    const std::int64_t* weight =
        group.weight.data() + static_cast<std::size_t>(rank) * group.milli_ranks;
    for (std::uint32_t s = 0; s < state.n_gpus; s++)
      useful += state.free_milli[s] *
                weight[group.milli_rank[static_cast<std::uint32_t>(state.free_milli[s])]];
  }
  for (std::size_t i = 0; i < several_.size(); i++) {
    const penstock_typical& task = several_[i];
    if (!model_is_here[several_model_[i]] || task.request > state.left) continue;
    std::uint32_t fitting = 0;
    std::int64_t there = 0;
    for (std::uint32_t s = 0; s < state.n_gpus; s++) {
      const bool fits = state.free_milli[s] >= static_cast<std::int32_t>(task.gpu_milli);
      fitting += fits;
      there += fits ? state.free_milli[s] : 0;
    }
    if (fitting >= task.gpu_count) useful += task.weight * there;
  }
  return total_ * free - useful;
}

std::int64_t FgdTables::score(const TableView& table, const penstock_program& program,
                              const penstock_column_op& op, const penstock_task& task,
                              std::uint32_t row, std::uint32_t* gpu_mask) const {
  std::uint8_t model_is_here[PENSTOCK_MAX_TYPICAL + 1];
  for (std::size_t i = 0; i < models_.size(); i++)
    model_is_here[i] = models_[i] == 0 || is_set(table, models_[i], row);
  return fgd_best(program, op, task, fgd_row(table, op, row), gpu_mask,
                  [&](const FgdRow& state) { return fragmentation(state, model_is_here); });
}

}  // namespace penstock
