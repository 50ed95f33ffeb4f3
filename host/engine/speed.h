// How fast engines are on this machine, measured once and kept in a file.
#ifndef PENSTOCK_ENGINE_SPEED_H_
#define PENSTOCK_ENGINE_SPEED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/engine/engine.h"

namespace penstock {

struct EngineSpeed {
  double copy = 0;    // bytes of payload per second; 0: the engine has no COPY
  double reduce = 0;  // bytes of a result per second, f32 sum of two sources
  double select = 0;  // decisions per second on a small table
};

// On pool memory of its own, some milliseconds for an engine that is as fast as memory. An error is
// the engine's: it refused, gave a wrong result or did not answer within `timeout_ms`.
Result<EngineSpeed> measure_speed(Engine& engine, std::uint32_t timeout_ms = 2000);

// What is known about one engine that "auto" may take.
struct KeptSpeed {
  std::string name;  // for make_engine; without white space
  std::uint32_t opcodes = 0;
  std::uint32_t types = 0;  // bit per element type of which REDUCE has every operation
  bool host_memory = false;
  EngineSpeed speed;
  std::string failure;  // why it was not measured; "" if it was
};
std::uint32_t full_types(const Capabilities& capabilities);

// The text of the file: the machine that it is good for, an engine a line, and a checksum over all
// that. parse gives an empty list for another machine or version, or a damaged text.
std::string kept_speeds_text(std::uint64_t machine, const std::vector<KeptSpeed>& speeds);
std::vector<KeptSpeed> parse_kept_speeds(const std::string& text, std::uint64_t machine);

// Changes with the processor, the plugins, the device nodes of accelerators and the variables that
// hide or show devices.
std::uint64_t speed_machine();
// PENSTOCK_SPEED, else penstock/speed.txt in $XDG_CACHE_HOME or ~/.cache; "" if there is no such
// place, or PENSTOCK_SPEED is "none".
std::string speed_path();
// Device nodes of accelerators: "/dev/nvidia0", "/dev/dri/renderD128". For EngineFactory::present.
std::vector<std::string> accelerator_nodes();

// The kept figures if they are of this machine; otherwise those that `measure` gives, which are
// kept. Of several processes that come at once one measures, as far as the file can be locked.
std::vector<KeptSpeed> speeds_of_this_machine(
    const std::function<std::vector<KeptSpeed>()>& measure);

}  // namespace penstock
#endif
