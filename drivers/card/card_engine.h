// The engine `card`.
#ifndef PENSTOCK_DRIVERS_CARD_CARD_ENGINE_H_
#define PENSTOCK_DRIVERS_CARD_CARD_ENGINE_H_

#include <memory>

#include "penstock/drivers/card/card.h"
#include "penstock/engine/engine.h"

namespace penstock::card {

// Each queue that is advanced takes a queue of the card, and gives it back when it goes. What the
// card cannot be given a queue for completes with the reason's status.
std::shared_ptr<Engine> make_card_engine(std::shared_ptr<Card> card);

// "card", over the buses that are registered: make_engine("card:verilator;seed=3"). Of those,
// "auto" takes none that is simulated.
EngineFactory card_engine_factory();

}  // namespace penstock::card
#endif
