// The part of the C interface that makes comms out of comms.
#include <memory>
#include <utility>

#include "comm_handle.h"

using penstock::Code;
using penstock::Status;
using penstock::sdk::guarded;
using penstock::sdk::null_comm;

namespace {

// A comm that `make` makes out of another, in the same world and pool.
template <typename Make>
penstock_status derive(penstock_comm* comm, penstock_comm** made, Make make) {
  return guarded([&]() -> Status {
    if (made == nullptr) return Status(Code::invalid_argument, "the place for the comm is null");
    *made = nullptr;
    if (comm == nullptr) return null_comm();
    auto derived = std::make_unique<penstock_comm>();
    derived->world = comm->world;
    derived->pool = comm->pool;
    PENSTOCK_ASSIGN(derived->comm, make(*comm->comm));
    if (derived->comm) *made = derived.release();
    return {};
  });
}

}  // namespace

extern "C" {

penstock_status penstock_comm_revoke(penstock_comm* comm) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return null_comm();
    comm->comm->revoke();
    return {};
  });
}

penstock_status penstock_comm_shrink(penstock_comm* comm, penstock_comm** made) {
  return derive(comm, made, [](penstock::Comm& from) { return from.shrink(); });
}

penstock_status penstock_comm_grow(penstock_comm* comm, std::uint32_t ranks, penstock_comm** made) {
  return derive(comm, made, [ranks](penstock::Comm& from) { return from.grow(ranks); });
}

penstock_status penstock_comm_split(penstock_comm* comm, std::int32_t color, std::int32_t key,
                                    penstock_comm** made) {
  return derive(comm, made, [color, key](penstock::Comm& from) { return from.split(color, key); });
}

std::uint64_t penstock_comm_epoch(const penstock_comm* comm) {
  return comm == nullptr ? 0 : comm->comm->epoch();
}

}  // extern "C"
