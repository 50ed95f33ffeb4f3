// The plugin that brings the engine `opencl`.
#include "penstock/base/log.h"
#include "penstock/drivers/opencl/opencl_engine.h"

PENSTOCK_ENGINE_PLUGIN(register_engine) {
  if (const penstock::Status added = register_engine(penstock::opencl::opencl_engine_factory());
      !added.ok())
    penstock::log::warn("{}", added.message());
}
