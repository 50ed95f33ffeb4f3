// A replay by several processes: the pool, the forks, and the binder.
#ifndef PENSTOCK_SDK_TOOL_REPLAY_SHARED_H_
#define PENSTOCK_SDK_TOOL_REPLAY_SHARED_H_

#include "penstock/sched/replay_shared.h"

namespace penstock::tool {

// In a pool of its own in /dev/shm, which is removed afterwards. The calling process has no
// threads; it is the binder. peer_dead names a scheduler that ended otherwise than it should.
Result<SharedReplayResult> replay_in_processes(ReplayConfig config,
                                               const SharedReplayConfig& shared);

}  // namespace penstock::tool
#endif
