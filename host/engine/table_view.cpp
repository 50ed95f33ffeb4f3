#include "penstock/engine/host_engine.h"

namespace penstock {

TableView table_view(penstock_node_table* header) {
  auto* base = reinterpret_cast<std::byte*>(header);
  const auto column = [&](std::uint64_t offset) {
    return reinterpret_cast<std::int64_t*>(base + offset);
  };
  return TableView{header,
                   column(header->allocatable),
                   column(header->requested),
                   column(header->scored),
                   column(header->gpu),
                   reinterpret_cast<std::uint64_t*>(base + header->bits),
                   column(header->free)};
}

}  // namespace penstock
