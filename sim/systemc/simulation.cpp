#include "penstock/sim/systemc/simulation.h"

#include <tlm_utils/simple_initiator_socket.h>

#include <cstring>
#include <mutex>
#include <systemc>

#include "penstock/sim/systemc/card.h"
#include "penstock/sim/systemc/memory.h"

// The kernel's library refers to it; nothing here starts from it.
extern "C" __attribute__((visibility("default"))) int sc_main(int, char**) { return 0; }

namespace penstock::systemc {
namespace {

std::mutex& kernel_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Makes a simulation the kernel's present one.
class Turn {
 public:
  explicit Turn(sc_core::sc_simcontext* context) : lock_(kernel_mutex()) {
    sc_core::sc_curr_simcontext = context;
    sc_core::sc_default_global_context = context;
  }

 private:
  const std::lock_guard<std::mutex> lock_;
};

// The host's side of the register port.
struct Host : sc_core::sc_module {
  explicit Host(const sc_core::sc_module_name& name) : sc_core::sc_module(name), socket("socket") {}
  tlm_utils::simple_initiator_socket<Host> socket;
};

}  // namespace

struct Simulation::World {
  // Members are made, and taken down, while this context is the present one.
  struct Modules {
    Modules(const MemoryOptions& options, const Timing& timing)
        : cycle(4, sc_core::SC_NS),
          memory("memory", options, cycle),
          card("card", timing, cycle),
          host("host") {
      host.socket.bind(card.registers);
      card.ctl.bind(memory.socket);
      card.data.bind(memory.socket);
    }
    const sc_core::sc_time cycle;
    Memory memory;
    Card card;
    Host host;
  };

  sc_core::sc_simcontext* context = nullptr;
  std::unique_ptr<Modules> modules;

  bool access(bool is_write, std::uint32_t offset, std::uint32_t* value) {
    const Turn turn(context);
    tlm::tlm_generic_payload payload;
    payload.set_command(is_write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    payload.set_address(offset);
    payload.set_data_ptr(reinterpret_cast<unsigned char*>(value));
    payload.set_data_length(sizeof(*value));
    payload.set_streaming_width(sizeof(*value));
    payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    modules->host.socket->b_transport(payload, delay);
    sc_core::sc_start(delay, sc_core::SC_RUN_TO_TIME);
    return payload.is_response_ok();
  }
};

Simulation::Simulation(const MemoryOptions& memory, const Timing& timing)
    : world_(std::make_unique<World>()) {
  const Turn turn(nullptr);
  world_->context = new sc_core::sc_simcontext;
  sc_core::sc_curr_simcontext = world_->context;
  sc_core::sc_default_global_context = world_->context;
  world_->modules = std::make_unique<World::Modules>(memory, timing);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
}

Simulation::~Simulation() {
  const Turn turn(world_->context);
  world_->modules.reset();
  delete world_->context;
  sc_core::sc_curr_simcontext = nullptr;
  sc_core::sc_default_global_context = nullptr;
}

bool Simulation::read(std::uint32_t offset, std::uint32_t* value) {
  *value = 0;
  return world_->access(false, offset, value);
}
bool Simulation::write(std::uint32_t offset, std::uint32_t value) {
  return world_->access(true, offset, &value);
}

std::uint64_t Simulation::attach(std::byte* memory, std::uint64_t bytes) {
  const Turn turn(world_->context);
  return world_->modules->memory.attach(memory, bytes);
}
bool Simulation::detach(std::uint64_t bus) {
  const Turn turn(world_->context);
  return world_->modules->memory.detach(bus);
}
void Simulation::add_fault(const MemoryFault& fault) {
  const Turn turn(world_->context);
  world_->modules->memory.add_fault(fault);
}
void Simulation::clear_faults() {
  const Turn turn(world_->context);
  world_->modules->memory.clear_faults();
}

void Simulation::run(std::uint64_t cycles) {
  if (cycles == 0) return;
  const Turn turn(world_->context);
  sc_core::sc_start(static_cast<double>(cycles) * world_->modules->cycle, sc_core::SC_RUN_TO_TIME);
}

std::uint64_t Simulation::cycle() const {
  const Turn turn(world_->context);
  return static_cast<std::uint64_t>(sc_core::sc_time_stamp() / world_->modules->cycle + 0.5);
}

bool Simulation::interrupt() const {
  const Turn turn(world_->context);
  return world_->modules->card.interrupt();
}

}  // namespace penstock::systemc
