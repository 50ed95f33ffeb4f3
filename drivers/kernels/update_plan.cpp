#include "penstock/drivers/kernels/update_plan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "penstock/base/status.h"
#include "penstock/descriptor/node_table.h"

namespace penstock::kernels {
namespace {

// Bounds of the cells that an ADD may change.
enum : u16 { kQuantity, kGpu, kFree, kCount };
struct Bounds {
  i64 low, high;
};
constexpr Bounds kBounds[] = {{0, PENSTOCK_MAX_QUANTITY},
                              {0, 1000},
                              {-PENSTOCK_MAX_FREE_VALUE, PENSTOCK_MAX_FREE_VALUE},
                              {0, PENSTOCK_MAX_DOMAIN_COUNT}};

// Of any update but ROWS.
update_change change_of(const penstock_node_table& header, const penstock_update& update,
                        u32 index) {
  const bool add = update.mode == PENSTOCK_UPDATE_ADD;
  const u64 cell = u64{update.column} * header.capacity + update.row;
  const auto large = [&](u64 base, u16 bounds) -> update_change {
    return {base + cell * sizeof(i64), update.value, index,
            static_cast<u16>(add ? UPDATE_ADD : UPDATE_SET), bounds};
  };
  const auto small = [&](u64 base, u16 bounds) -> update_change {
    return {base + cell * sizeof(i32), update.value, index,
            static_cast<u16>(add ? UPDATE_ADD_SMALL : UPDATE_SET_SMALL), bounds};
  };
  switch (update.field) {
    case PENSTOCK_UPDATE_ALLOCATABLE:
      return large(header.allocatable, kQuantity);
    case PENSTOCK_UPDATE_REQUESTED:
      return large(header.requested, kQuantity);
    case PENSTOCK_UPDATE_SCORED:
      return large(header.scored, kQuantity);
    case PENSTOCK_UPDATE_GPU:
      return large(header.gpu, kGpu);
    case PENSTOCK_UPDATE_FREE:
      return large(header.free, kFree);
    case PENSTOCK_UPDATE_DOMAIN:
      return small(header.domain, kCount);
    case PENSTOCK_UPDATE_COUNT:
      return small(header.count, kCount);
  }
  return {header.bits + cell / 64 * sizeof(u64), static_cast<i64>(u64{1} << (update.row % 64)),
          index, static_cast<u16>(update.value != 0 ? UPDATE_SET_BIT : UPDATE_CLEAR_BIT), 0};
}

constexpr u64 line_up(u64 bytes) { return (bytes + 63) / 64 * 64; }

// Buckets enough to keep a device busy, and few enough that going through them costs nothing.
u32 buckets_for(std::size_t changes) {
  return static_cast<u32>(std::clamp<std::size_t>(std::bit_ceil(changes / 4 + 1), 1, 16384));
}

}  // namespace

Result<UpdatePlan> UpdatePlan::make(const UpdateArguments& arguments, const TableLimits& limits) {
  PENSTOCK_CHECK(std::has_single_bit(limits.lanes), "groups of {} lanes", limits.lanes);
  UpdatePlan plan;
  try {
    std::vector<update_change> changes;
    changes.reserve(arguments.n);
    for (u64 i = 0; i < arguments.n; i++)
      if (arguments.updates[i].field != PENSTOCK_UPDATE_ROWS)
        changes.push_back(
            change_of(*arguments.view.header, arguments.updates[i], static_cast<u32>(i)));
    plan.sort(changes);
    plan.lay_out(limits);
  } catch (const std::bad_alloc&) {
    return error(Code::no_space, "no memory for the plan of {} updates", arguments.n);
  }
  return plan;
}

// Stable, so that a bucket keeps the order of the list.
void UpdatePlan::sort(const std::vector<update_change>& changes) {
  batch_.buckets = buckets_for(changes.size());
  const auto bucket_of = [this](const update_change& change) {
    const u64 hash = (change.at / 8) * 0x9e3779b97f4a7c15u;
    return static_cast<u32>(hash >> 32) & (batch_.buckets - 1);
  };
  begins_.assign(batch_.buckets + 1, 0);
  for (const update_change& change : changes) begins_[bucket_of(change) + 1]++;
  for (u32 bucket = 0; bucket < batch_.buckets; bucket++) begins_[bucket + 1] += begins_[bucket];
  std::vector<u32> next(begins_.begin(), begins_.end() - 1);
  changes_.resize(changes.size());
  for (const update_change& change : changes) changes_[next[bucket_of(change)]++] = change;
}

void UpdatePlan::lay_out(const TableLimits& limits) {
  for (std::size_t i = 0; i < std::size(kBounds); i++) {
    batch_.low[i] = kBounds[i].low;
    batch_.high[i] = kBounds[i].high;
  }
  batch_.changes = line_up(sizeof(update_batch));
  batch_.begins = batch_.changes + changes_.size() * sizeof(update_change);
  input_bytes_ = line_up(batch_.begins + begins_.size() * sizeof(u32));
  batch_.undo = 0;
  batch_.stops = line_up(changes_.size() * sizeof(i64));
  scratch_bytes_ = line_up(batch_.stops + batch_.buckets * sizeof(update_stop));
  if (empty()) return;
  const u32 groups = (batch_.buckets + limits.lanes - 1) / limits.lanes;
  launches_ = {{"penstock_update_apply", groups, limits.lanes, 0, 0},
               {"penstock_update_undo", 1, limits.lanes, 0, 0}};
}

void UpdatePlan::write_inputs(std::byte* to) const {
  std::memcpy(to, &batch_, sizeof batch_);
  std::memcpy(to + batch_.changes, changes_.data(), changes_.size() * sizeof(update_change));
  std::memcpy(to + batch_.begins, begins_.data(), begins_.size() * sizeof(u32));
}

}  // namespace penstock::kernels
