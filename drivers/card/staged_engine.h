// The engine of a card that cannot be given the caller's memory: it works on copies in memory of
// its own (Bus::stages()). Sources are written there before each step, and results read back after
// it; a COPY or REDUCE that does not fit goes in steps. One descriptor is with the card at a time,
// for each queue. WAIT, SIGNAL and BARRIER are the host's (device_engine.h).
//
// A step during which the card was reset is done again: until results are read back, nothing of
// the caller's has changed. When that does not help, the card is lost.
#ifndef PENSTOCK_DRIVERS_CARD_STAGED_ENGINE_H_
#define PENSTOCK_DRIVERS_CARD_STAGED_ENGINE_H_

#include <memory>

#include "penstock/drivers/card/card.h"
#include "penstock/engine/engine.h"

namespace penstock::card {

// `card`'s bus stages. A node table that does not fit is refused with no_space.
std::shared_ptr<Engine> make_staged_engine(std::shared_ptr<Card> card);

}  // namespace penstock::card
#endif
