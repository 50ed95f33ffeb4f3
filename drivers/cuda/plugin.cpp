// The plugin that brings the engine `cuda`.
#include "penstock/base/log.h"
#include "penstock/drivers/cuda/device.h"

PENSTOCK_ENGINE_PLUGIN(register_engine) {
  if (const penstock::Status added = register_engine(penstock::cuda::cuda_engine_factory());
      !added.ok())
    penstock::log::warn("{}", added.message());
}
