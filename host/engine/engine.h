// Whatever executes descriptors. One vtable; `scalar` defines every result, the others give the
// same bits or refuse with `unsupported`.
#ifndef PENSTOCK_ENGINE_ENGINE_H_
#define PENSTOCK_ENGINE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/queue/queue.h"

namespace penstock {

// What SELECT may be asked for: of programs, of tasks and of tables. An engine refuses the rest of
// it, a program with PENSTOCK_FIELD_PROGRAM and the operation's index, a task with
// PENSTOCK_FIELD_TASK and its index, a table with PENSTOCK_FIELD_TABLE.
struct SelectCapabilities {
  std::uint64_t operations = 0;      // bit per penstock_column_opcode that a program may have
  std::uint32_t normalisations = 0;  // bit per penstock_normalise
  std::uint32_t ties = 0;            // bit per penstock_tie
  std::uint32_t max_best = 0;        // rows that a result lists
  bool gpus = false;                 // tasks may ask for GPUs
  bool domains = false;              // tasks may have domain terms and raises
  std::uint32_t max_resources = 0;   // columns of a table
  std::uint32_t max_bits = 0;
  std::uint32_t max_free = 0;
};

struct Capabilities {
  std::string name;           // "scalar"
  std::string description;    // one line: what executes, with which instructions
  std::uint32_t opcodes = 0;  // bit per penstock_opcode
  std::uint32_t redops[PENSTOCK_TYPE_COUNT] = {};  // per type: bit per penstock_redop
  // Per type: bit per out_type that a REDUCE may convert to. The bits of INT8, and bit INT8 of the
  // others, are about block-scaled int8, which has redops[F32].
  std::uint32_t out_types[PENSTOCK_TYPE_COUNT] = {};
  bool weights = false;           // REDUCE with the flag WEIGHTS
  std::uint32_t max_sources = 0;  // of one REDUCE or OUTER_STEP
  std::uint32_t max_destinations = 0;
  std::uint64_t max_bytes = 0;  // of one operand
  std::uint32_t max_rows = 0;   // of a node table, 0: no SELECT
  SelectCapabilities select;
  bool host_memory = false;  // reaches the process's own memory
  bool synchronous = false;  // advance() itself does the work
};

class Kernels;       // host_engine.h
class DeviceMemory;  // device_memory.h

// An engine may serve many queues; each queue is advanced by one thread at a time.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual const Capabilities& capabilities() const = 0;
  // ok, or unsupported with the reason. Never touches the memory that the descriptor names.
  virtual Status accepts(const penstock_descriptor& descriptor) const = 0;
  // Makes progress on the queue: executes (or hands on, or collects) as much as can be done without
  // blocking, and stops at a WAIT that is not satisfied. Returns how many completions were written.
  virtual std::uint32_t advance(Queue& queue) = 0;
  // The kernels of an engine that would execute a descriptor in the calling thread anyway, for
  // callers that need no queue. Null: there is only the queue. Thread-safe.
  virtual const Kernels* direct_kernels() const { return nullptr; }
  // Whether operands may be at `data`, which is in the memory of a device (device_memory.h).
  virtual bool reaches_device_memory(const void* data) const {
    static_cast<void>(data);
    return false;
  }
  // Cycles of a clock of the engine's own in which it worked, for measurements; 0: it counts none.
  virtual std::uint64_t busy_cycles() { return 0; }
};

// One of several ways in which an engine runs: a bus of the card, a device of an API.
struct EngineVariant {
  std::string name;  // what make_engine takes: "card:verilator"
  bool available = false;
  std::string reason;      // why not, or what it runs on
  bool simulated = false;  // a simulation or a stand-in: right, but its speed says nothing
};

struct EngineInfo {
  std::string name;
  bool available = false;
  std::string reason;         // why not, or what it runs on
  Capabilities capabilities;  // filled when available and known without making the engine
  std::vector<EngineVariant> variants = {};  // best first; empty: there is one way, without a name
  bool simulated = false;                    // whatever of it is available is simulated
};

// How the registry makes engines of one name. `make` gets what followed the name and a ':' in the
// text that was asked for ("card:verilator" gives "verilator"), or "".
struct EngineFactory {
  std::string name;  // letters, digits, '_' and '-'
  // "auto" takes the fastest (choice.h); of equal ones, or where nothing was measured, that with
  // the highest preference; below 0 it never takes it. simd has 100, scalar 50, devices 60.
  int preference = 0;
  std::function<EngineInfo()> probe;  // cheap; no side effect that outlives it
  std::function<Result<std::shared_ptr<Engine>>(const std::string& argument)> make;
  // Null, or how to find the device memory that the process has (device_memory.h).
  std::function<std::shared_ptr<DeviceMemory>()> find_memory;
  // False where "auto" need not even probe: there can be no device. Looks at nothing but names of
  // files (accelerator_nodes in speed.h). Null: it has to be probed.
  std::function<bool()> present = {};
};
// Drivers call this before the first use of the registry. already_exists if the name is taken,
// invalid_argument if the factory is incomplete. Thread-safe.
Status register_engine(EngineFactory factory);

// Registers the engines of a shared library, which stays loaded. It says in one source
//   PENSTOCK_ENGINE_PLUGIN(register_engine) { static_cast<void>(register_engine({...})); }
// and is compiled with the same compiler and headers. not_found if it does not load, unsupported if
// it is no plugin or was made for another version.
Status load_engine_plugin(const std::string& path);

// Loads what PENSTOCK_PLUGINS names, or else the .so files in the folders of plugins beside the
// binary that holds this code: plugins/ (where it was built) and penstock/plugins/ in the folder
// for libraries (where it was installed). Once: list_engines and make_engine call it first. What
// does not load is logged.
void load_engine_plugins();

#define PENSTOCK_PLUGIN_VERSION "penstock-engine-6"
#define PENSTOCK_ENGINE_PLUGIN(register_function)                                     \
  extern "C" {                                                                        \
  extern __attribute__((visibility("default"))) const char penstock_plugin_version[]; \
  const char penstock_plugin_version[] = PENSTOCK_PLUGIN_VERSION;                     \
  __attribute__((visibility("default"))) void penstock_register_engines(              \
      ::penstock::Status (*)(::penstock::EngineFactory));                             \
  }                                                                                   \
  void penstock_register_engines(::penstock::Status (*register_function)(::penstock::EngineFactory))

// Registered engines, those of plugins among them, best first. Thread-safe.
std::vector<EngineInfo> list_engines();
// By name, or "auto" (the fastest, see choice.h), or a comma list of which the first is taken that
// can be made. not_found lists the names there are; unsupported says why it cannot run here.
Result<std::shared_ptr<Engine>> make_engine(const std::string& name);

}  // namespace penstock
#endif
