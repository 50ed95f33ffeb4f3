// Enumerates small plans for tests: every collective, algorithm, root and size that is different.
#ifndef PENSTOCK_COMM_PLAN_KEYS_TEST_H_
#define PENSTOCK_COMM_PLAN_KEYS_TEST_H_

#include <fmt/core.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "penstock/comm/plan.h"

namespace penstock {

inline std::string key_text(const PlanKey& key) {
  return fmt::format("{} {} ranks {} group {} devices {} root {} part {} element {} in_place {}",
                     collective_name(key.collective), key.algorithm, key.topology.ranks,
                     key.topology.group, key.topology.payload_devices, key.root, key.part_bytes,
                     key.element_bytes, key.in_place);
}

struct KeySpace {
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint32_t> devices;
  std::vector<std::uint64_t> part_bytes;
  std::vector<std::uint32_t> element_bytes;
  bool all_roots = false;  // else the first, a middle one and the last
  bool inlined = true;     // also with room for inlined blocks
};

// Calls visit(key) for every key of the space that makes sense; returns how many. Algorithms are
// named, and "auto" is left out: it is one of them.
template <typename Visit>
std::size_t for_each_key(const KeySpace& space, const Visit& visit) {
  std::size_t count = 0;
  for (const Algorithm& algorithm : list_algorithms()) {
    for (const std::uint32_t ranks : space.ranks) {
      if (algorithm.collective == Collective::send_recv && ranks > 2) continue;
      std::set<std::uint32_t> roots = {0};
      if (has_root(algorithm.collective)) {
        for (std::uint32_t root = 0; root < ranks; ++root) {
          if (space.all_roots || root == ranks / 2 || root == ranks - 1) roots.insert(root);
        }
      }
      // Every size of a group that makes at least two groups of at least two.
      std::vector<std::uint32_t> groups;
      if (!algorithm.two_level) groups.push_back(0);
      for (std::uint32_t group = 2; algorithm.two_level && group < ranks; ++group) {
        if (ranks % group == 0) groups.push_back(group);
      }
      for (const std::uint32_t group : groups) {
        for (const std::uint32_t devices : space.devices) {
          for (const std::uint32_t root : roots) {
            for (const std::uint64_t part_bytes : space.part_bytes) {
              if (algorithm.collective == Collective::barrier && part_bytes > 0) continue;
              for (const std::uint32_t element_bytes : space.element_bytes) {
                if (part_bytes % element_bytes != 0) continue;
                for (const bool in_place : {false, true}) {
                  // Without room for inlined blocks, and with it where it makes a difference.
                  for (const std::uint32_t inline_lines : {0u, 256u}) {
                    if (inline_lines > 0 &&
                        (!space.inlined || part_bytes == 0 || part_bytes > 1024)) {
                      continue;
                    }
                    visit(PlanKey{algorithm.collective,
                                  {ranks, devices, group},
                                  root,
                                  element_bytes,
                                  part_bytes,
                                  in_place,
                                  algorithm.name,
                                  inline_lines});
                    ++count;
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  return count;
}

}  // namespace penstock
#endif
