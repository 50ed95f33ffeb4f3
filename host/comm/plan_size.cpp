// How much of a part fits into one pass, and how much scratch memory a comm needs.
#include <algorithm>

#include "penstock/comm/plan.h"
#include "penstock/comm/plan_internal.h"
#include "penstock/descriptor/address.h"

namespace penstock {
namespace {

constexpr std::uint64_t kUnit = PENSTOCK_CACHE_LINE;  // a multiple of every element size

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
  PlanKey probe = key;
  probe.part_bytes = 0;
  PENSTOCK_TRY(plan_internal::check_key(probe));
  if (key.collective == Collective::barrier) return std::uint64_t{0};

  const Limit limit{half_bytes, rank_bytes};
  std::vector<std::uint64_t> starts = plan_internal::thresholds(probe);
  starts.push_back(kUnit);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  starts.push_back(kMaxPartBytes + kUnit);

  std::uint64_t best = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    if (!fits(probe, starts[i], limit)) break;
    std::uint64_t low = starts[i] / kUnit;  // fits
    std::uint64_t high = starts[i + 1] / kUnit;
    const bool whole = fits(probe, (high - 1) * kUnit, limit);
    if (whole) low = high - 1;
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (fits(probe, middle * kUnit, limit) ? low : high) = middle;
    }
    best = low * kUnit;
    if (!whole) break;
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
  const std::uint64_t lines = (rank_bytes + kUnit - 1) / kUnit + ranks;
  return ranks_on_device * lines * kUnit;
}

}  // namespace penstock
