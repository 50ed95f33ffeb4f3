#include "penstock/drivers/card/card_engine.h"

#include <utility>

#include "penstock/base/log.h"
#include "penstock/drivers/card/card_queue.h"
#include "penstock/drivers/card/staged_engine.h"
#include "penstock/engine/accept.h"
#include "penstock/engine/speed.h"

namespace penstock::card {
namespace {

class CardEngine final : public Engine {
 public:
  explicit CardEngine(std::shared_ptr<Card> card) : card_(std::move(card)) {}

  const Capabilities& capabilities() const override { return card_->identity().capabilities; }
  Status accepts(const penstock_descriptor& descriptor) const override {
    if (card_->lost()) return error(Code::io_error, "card: it does not answer any more");
    return accept_descriptor(capabilities(), descriptor);
  }
  std::uint32_t advance(Queue& queue) override;
  std::uint64_t busy_cycles() override { return card_->busy_cycles(); }

 private:
  const std::shared_ptr<Card> card_;
};

std::uint32_t CardEngine::advance(Queue& queue) {
  auto* side = dynamic_cast<CardQueue*>(queue.engine_side.get());
  if (side == nullptr || side->card() != card_.get()) {
    if (queue.front() == nullptr) return 0;
    // Another engine's side is given up before: it may hold what this one needs.
    queue.engine_side.reset();
    Result<std::unique_ptr<CardQueue>> made = CardQueue::open(card_, queue);
    if (!made.ok()) {
      log::warn("card: {}", made.status().message());
      const Code code = queue.cancelled() ? Code::cancelled : made.status().code();
      std::uint32_t completions = 0;
      for (; queue.front() != nullptr; ++completions)
        queue.complete(static_cast<std::uint32_t>(code));
      return completions;
    }
    side = made.value().get();
    queue.engine_side = std::move(made).value();
  }
  return side->advance(queue);
}

}  // namespace

std::shared_ptr<Engine> make_card_engine(std::shared_ptr<Card> card) {
  return std::make_shared<CardEngine>(std::move(card));
}

EngineFactory card_engine_factory() {
  EngineFactory factory;
  factory.name = "card";
  factory.preference = 60;
  factory.present = [] { return !accelerator_nodes().empty(); };
  factory.probe = [] {
    EngineInfo info;
    info.name = "card";
    std::string names;
    bool hardware = false;
    for (const BusInfo& bus : list_buses()) {
      info.available = info.available || bus.available.ok();
      hardware = hardware || (bus.available.ok() && !bus.simulated);
      info.variants.push_back({"card:" + bus.name, bus.available.ok(),
                               bus.available.ok() ? "" : bus.available.message(), bus.simulated});
      names += names.empty() ? "" : ", ";
      names += bus.name;
      if (!bus.available.ok()) names += " (not here: " + bus.available.message() + ")";
    }
    info.simulated = info.available && !hardware;
    info.reason = names.empty() ? "no bus to a card is known" : "a card over a bus: " + names;
    return info;
  };
  factory.make = [](const std::string& argument) -> Result<std::shared_ptr<Engine>> {
    const auto named = [](const Status& status) { return status.with_context("engine card"); };
    Result<std::unique_ptr<Bus>> bus = make_bus(argument);
    if (!bus.ok()) return named(bus.status());
    Result<std::shared_ptr<Card>> card = Card::open(std::move(bus).value());
    if (!card.ok()) return named(card.status());
    if ((*card)->bus().stages()) return make_staged_engine(std::move(card).value());
    return make_card_engine(std::move(card).value());
  };
  return factory;
}

}  // namespace penstock::card
