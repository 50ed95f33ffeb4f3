#include "penstock/comm/plan_spaces.h"

namespace penstock {

std::uint32_t part_count(const PlanKey& key, Space space, std::uint32_t rank) {
  const std::uint32_t n = key.topology.ranks;
  const bool is_root = rank == key.root;
  const bool is_send = space == Space::send;
  if (space == Space::block) return 0;
  switch (key.collective) {
    case Collective::all_reduce:
      return 1;
    case Collective::broadcast:
      return is_send && !is_root ? 0 : 1;
    case Collective::reduce:
      return is_send || is_root ? 1 : 0;
    case Collective::all_gather:
      return is_send ? 1 : n;
    case Collective::reduce_scatter:
      return is_send ? n : 1;
    case Collective::all_to_all:
      return n;
    case Collective::gather:
      return is_send ? 1 : (is_root ? n : 0);
    case Collective::scatter:
      return is_send ? (is_root ? n : 0) : 1;
    case Collective::send_recv:
      return rank == (is_send ? 0 : n - 1) ? 1 : 0;
    case Collective::barrier:
      return 0;
  }
  return 0;
}

std::int64_t aliased_send_part(const PlanKey& key, std::uint32_t rank, std::uint32_t index) {
  if (!key.in_place || part_count(key, Space::send, rank) == 0) return -1;
  switch (key.collective) {
    case Collective::all_gather:
    case Collective::gather:
      return index == rank ? 0 : -1;
    case Collective::reduce_scatter:
    case Collective::scatter:
      return rank;
    default:
      return index;
  }
}

Definition define_output(const PlanKey& key, std::uint32_t rank, std::uint32_t index) {
  const std::uint32_t n = key.topology.ranks;
  Definition definition;
  switch (key.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter:
      definition.is_fold = true;
      if (key.topology.is_grouped()) definition.group = key.topology.group;
      for (std::uint32_t q = 0; q < n; ++q) {
        definition.inputs.push_back({q, key.collective == Collective::reduce_scatter ? rank : 0});
      }
      break;
    case Collective::broadcast:
      definition.inputs = {{key.root, 0}};
      break;
    case Collective::all_gather:
    case Collective::gather:
      definition.inputs = {{index, 0}};
      break;
    case Collective::all_to_all:
      definition.inputs = {{index, rank}};
      break;
    case Collective::scatter:
      definition.inputs = {{key.root, rank}};
      break;
    case Collective::send_recv:
      definition.inputs = {{0, 0}};
      break;
    case Collective::barrier:
      break;
  }
  return definition;
}

}  // namespace penstock
