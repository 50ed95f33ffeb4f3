// A plugin with one engine, for registry_test.
#include "penstock/engine/engine.h"

namespace {

class NopEngine final : public penstock::Engine {
 public:
  NopEngine() {
    capabilities_.name = "from-plugin";
    capabilities_.opcodes = 1u << PENSTOCK_OP_NOP;
  }
  const penstock::Capabilities& capabilities() const override { return capabilities_; }
  penstock::Status accepts(const penstock_descriptor& descriptor) const override {
    if (descriptor.opcode == PENSTOCK_OP_NOP) return {};
    return penstock::error(penstock::Code::unsupported, "from-plugin: it has NOP alone");
  }
  std::uint32_t advance(penstock::Queue& queue) override {
    std::uint32_t completions = 0;
    for (; queue.front() != nullptr; ++completions)
      queue.complete(queue.front()->opcode == PENSTOCK_OP_NOP ? PENSTOCK_OK : PENSTOCK_UNSUPPORTED);
    return completions;
  }

 private:
  penstock::Capabilities capabilities_;
};

}  // namespace

PENSTOCK_ENGINE_PLUGIN(register_engine) {
  penstock::EngineFactory factory;
  factory.name = "from-plugin";
  factory.preference = -1;
  factory.probe = [] {
    return penstock::EngineInfo{"from-plugin", true, "a plugin", NopEngine().capabilities()};
  };
  factory.make = [](const std::string&) -> penstock::Result<std::shared_ptr<penstock::Engine>> {
    return std::shared_ptr<penstock::Engine>(std::make_shared<NopEngine>());
  };
  static_cast<void>(register_engine(factory));
}
