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
  // Tells this run from others on the machine; "" for "none". 1..48 characters of A-Za-z0-9._-
  std::string job;
};

// Reads PENSTOCK_RANK/SIZE, else torchrun's RANK, WORLD_SIZE, LOCAL_RANK, TORCHELASTIC_RUN_ID, else
// Open MPI's OMPI_COMM_WORLD_*, else MPICH's (Hydra) PMI_RANK/PMI_SIZE/MPI_LOCALRANKID, else
// Slurm's SLURM_PROCID/SLURM_NTASKS (only inside a step). A set that is incomplete or contradicts
// itself (rank >= size, not a number) gives invalid_argument with the variable's name and value. A
// variable that is empty counts as unset. A launcher that does not tell local ranks is taken to run
// on one host.
//
// The job is PENSTOCK_COMM, else what the launcher has: TORCHELASTIC_RUN_ID and MASTER_PORT,
// OMPI_MCA_ess_base_jobid or PMIX_NAMESPACE, PMI_JOBID, SLURM_JOB_ID and SLURM_STEP_ID; "world" for
// PENSTOCK_RANK without PENSTOCK_COMM; else the number of the parent process, which is the same for
// all ranks only if the launcher started them directly.
Result<Launch> detect_launch();

// The pool that the ranks of a job share when PENSTOCK_POOL names none:
// /dev/shm/penstock-<uid>-<job>.
std::string default_pool_spec(const Launch& launch);

}  // namespace penstock
#endif
