// How much of a part fits into one pass, and how much scratch memory a comm needs.
#include <algorithm>

#include "penstock/comm/plan.h"
#include "penstock/comm/plan_internal.h"
#include "penstock/descriptor/address.h"

namespace penstock {
namespace {

constexpr std::uint64_t kUnit = PENSTOCK_CACHE_LINE;  // a multiple of every element size

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

struct Limit {
  std::uint64_t half_bytes;
  std::uint64_t rank_bytes;
};

bool fits(PlanKey key, std::uint64_t part_bytes, const Limit& limit) {
  key.part_bytes = part_bytes;
  PlanBuilder builder(key, PlanBuilder::Mode::layout);
  plan_internal::build(builder);
  return builder.most_on_device() <= limit.half_bytes && builder.most_written() <= limit.rank_bytes;
}

}  // namespace

// Between two thresholds a larger part needs more of everything, so that bisection finds the limit.
// Segments are tried from the smallest on and the first limit counts: then every smaller part fits
// as well, and the last pass of a call, which takes what is left, needs no check of its own.
Result<std::uint64_t> pass_part_bytes(const PlanKey& key, std::uint64_t half_bytes,
                                      std::uint64_t rank_bytes) {
  PENSTOCK_TRY(plan_internal::check_key(key));
  if (key.collective == Collective::barrier) return std::uint64_t{0};

  const Limit limit{half_bytes, rank_bytes};
  const std::uint64_t bound = key.part_bytes == 0 ? kMaxPartBytes : round_up(key.part_bytes);
  std::vector<std::uint64_t> ends;  // of segments, the last size in each
  for (const std::uint64_t start : plan_internal::thresholds(key)) {
    if (start > kUnit && start <= bound) ends.push_back(start - kUnit);
  }
  ends.push_back(bound);
  std::sort(ends.begin(), ends.end());

  std::uint64_t best = 0;
  for (const std::uint64_t end : ends) {
    if (fits(key, end, limit)) {
      best = end;
      continue;
    }
    std::uint64_t high = end / kUnit;  // does not fit
    std::uint64_t low = best / kUnit;  // the last of the segment before, which counts as fitting
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (fits(key, middle * kUnit, limit) ? low : high) = middle;
    }
    best = low * kUnit;
    break;
  }
  if (best == 0) {
    return error(Code::no_space,
                 "{} of {} ranks: not even {} bytes of a part fit into {} bytes of scratch per "
                 "device with {} bytes per rank; make the pool or rank_bytes larger",
                 collective_name(key.collective), key.topology.ranks, kUnit, half_bytes,
                 rank_bytes);
  }
  return best;
}

// Symmetric operations put ceil(ranks / devices) ranks on a device, each with up to rank_bytes,
// possibly in a single block. Rooted ones spread at most that, but in blocks whose sizes differ by
// a line: at most ranks * ranks blocks go round over the devices.
std::uint64_t scratch_half_bytes(const Topology& topology, std::uint64_t rank_bytes) {
  const std::uint64_t ranks = topology.ranks;
  const std::uint64_t ranks_on_device =
      (ranks + topology.payload_devices - 1) / topology.payload_devices;
  const std::uint64_t lines = round_up(rank_bytes) / kUnit + ranks;
  return ranks_on_device * lines * kUnit;
}

}  // namespace penstock
