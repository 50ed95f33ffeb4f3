// The plugin that brings the engine `hls`.
#include "penstock/base/log.h"
#include "penstock/sim/hls/hls_engine.h"

PENSTOCK_ENGINE_PLUGIN(register_engine) {
  if (const penstock::Status added = register_engine(penstock::sim::hls_engine_factory());
      !added.ok())
    penstock::log::warn("{}", added.message());
}
