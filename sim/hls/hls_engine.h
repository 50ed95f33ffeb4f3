// The engine `hls`: the HLS kernels, called as the functions that they are, behind the engine
// interface for devices. It gives what the kernels would on a board, bit for bit; not their speed.
#ifndef PENSTOCK_SIM_HLS_HLS_ENGINE_H_
#define PENSTOCK_SIM_HLS_HLS_ENGINE_H_

#include "penstock/engine/engine.h"

namespace penstock::sim {

// What the two kernels do, and what the device engine does by itself (NOP, SIGNAL, WAIT, BARRIER).
// No UPDATE and no OUTER_STEP.
Capabilities hls_capabilities();

// The registry never takes it by itself: it simulates.
EngineFactory hls_engine_factory();

}  // namespace penstock::sim
#endif
