// Which rank this process is, as its launcher says.
#ifndef PENSTOCK_COMM_LAUNCH_H_
#define PENSTOCK_COMM_LAUNCH_H_

#include <cstdint>
#include <string>

#include "penstock/base/status.h"

namespace penstock {

struct Launch {
  std::string launcher;  // "penstock", "torchrun", "openmpi", "mpich", "slurm", "none"
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 1;
  std::string job;       // tells this run from others on the machine; "" for "none"
};

// Reads PENSTOCK_RANK/SIZE, else torchrun's RANK, WORLD_SIZE, LOCAL_RANK, TORCHELASTIC_RUN_ID, else
// Open MPI's OMPI_COMM_WORLD_*, else MPICH's (Hydra) PMI_RANK/PMI_SIZE/MPI_LOCALRANKID, else Slurm's
// SLURM_PROCID/SLURM_NTASKS (only inside a step). A set that is incomplete or contradicts itself
// (rank >= size, not a number) gives invalid_argument with the variable's name and value.
Result<Launch> detect_launch();

// The pool that the ranks of a job share when PENSTOCK_POOL names none:
// /dev/shm/penstock-<uid>-<job>.
std::string default_pool_spec(const Launch& launch);

}  // namespace penstock
#endif
