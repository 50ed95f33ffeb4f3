// What a card says about itself, and whether this driver understands it.
#ifndef PENSTOCK_DRIVERS_CARD_IDENTITY_H_
#define PENSTOCK_DRIVERS_CARD_IDENTITY_H_

#include <cstdint>

#include "penstock/drivers/card/bus.h"
#include "penstock/engine/engine.h"

namespace penstock::card {

struct Identity {
  std::uint32_t version = 0;
  std::uint32_t queues = 0;   // 1..64
  std::uint32_t windows = 0;  // of a queue: 1..16
  std::uint32_t lanes = 0;    // rows scanned per cycle
  Capabilities capabilities;  // name "card"
};

// Reads the identity registers. io_error if nothing answers, unsupported if it is no card of
// Penstock or one of another major version, corrupt if it says what no card can. What a later minor
// version has more is left alone.
Result<Identity> read_identity(Bus& bus);

}  // namespace penstock::card
#endif
