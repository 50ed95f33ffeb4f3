// The kernels for NVIDIA's devices; drivers/kernels has the source.
#include "penstock/drivers/kernels/dialect_cuda.h"
// After the dialect.
#include "penstock/drivers/kernels/kernels.h"
#include "penstock/drivers/kernels/select.h"
#include "penstock/drivers/kernels/update.h"
