/* The stand-in for the CUDA driver: what a test asks of it beside the driver's own functions. C. */
#ifndef PENSTOCK_SIM_CUDA_STANDIN_H_
#define PENSTOCK_SIM_CUDA_STANDIN_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What exists now and was not given back. */
struct penstock_cuda_standin_counts {
  uint64_t contexts, modules, streams, events, graphs, allocations, pinned, registrations;
  uint64_t launches;       /* so far, those of graphs included */
  uint64_t graph_launches; /* so far */
};
__attribute__((visibility("default"))) struct penstock_cuda_standin_counts
penstock_cuda_standin_live(void);

/* Begins again with these options instead of those of PENSTOCK_CUDA_STANDIN: a device that was lost
 * is back, counts of launches and allocations start at 0. Nothing may be on its way. Returns 0, or
 * -1 if the options are wrong; README.md has them. */
__attribute__((visibility("default"))) int penstock_cuda_standin_restart(const char* options);

#ifdef __cplusplus
}
#endif
#endif
