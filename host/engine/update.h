// UPDATE as node_table.h defines it; the same code on every host engine.
#ifndef PENSTOCK_ENGINE_UPDATE_H_
#define PENSTOCK_ENGINE_UPDATE_H_

#include <cstdint>

#include "penstock/engine/host_engine.h"

namespace penstock {

// Applies n updates in order to a checked table: all of them, and the generation rises by one, or
// none. Returns a penstock_status:
//   PENSTOCK_OK
//   PENSTOCK_INVALID_ARGUMENT  no such field, mode, column or row, or a reserved field is not 0
//   PENSTOCK_OUT_OF_RANGE      a cell would leave its bounds
//   PENSTOCK_NO_SPACE          no memory for what is needed to take a list back (24 bytes for each
//                              update)
// and in the second and third case the index of the update concerned in *bad_index (never null):
// the first that is wrong whatever the cells hold, else the first ADD that leaves its bounds. One
// thread at a time, and no reader meanwhile.
std::uint32_t apply_updates(const TableView& table, const penstock_update* updates, std::uint64_t n,
                            std::uint64_t* bad_index);

// What can be said of an update without looking at a cell: as above, but for ADD. Pure.
std::uint32_t check_update(const penstock_node_table& header, const penstock_update& update);

}  // namespace penstock
#endif
