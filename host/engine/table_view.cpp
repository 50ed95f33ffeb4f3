#include "penstock/engine/host_engine.h"

namespace penstock {

TableView table_view(penstock_node_table* header, std::byte* data) {
  const penstock_node_table& h = *header;
  const auto cells = [&](std::uint64_t offset) {
    return reinterpret_cast<std::int64_t*>(data + offset);
  };
  return TableView{header,
                   cells(h.allocatable),
                   cells(h.requested),
                   cells(h.scored),
                   cells(h.gpu),
                   reinterpret_cast<std::uint64_t*>(data + h.bits),
                   cells(h.free),
                   reinterpret_cast<std::int32_t*>(data + h.domain),
                   reinterpret_cast<std::int32_t*>(data + h.count),
                   reinterpret_cast<const double*>(data + h.logs)};
}

TableView table_view(penstock_node_table* header) {
  return table_view(header, reinterpret_cast<std::byte*>(header));
}

}  // namespace penstock
