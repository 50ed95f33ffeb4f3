// Ranks as forked processes over a pool in /dev/shm, for tests.
#ifndef PENSTOCK_TESTS_MULTIPROCESS_RANKS_H_
#define PENSTOCK_TESTS_MULTIPROCESS_RANKS_H_

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "penstock/comm/comm.h"
#include "penstock/memory/pool.h"

namespace penstock::test {

// A pool with a name of its own, removed at the end of the scope.
class ScopedPool {
 public:
  explicit ScopedPool(std::uint32_t devices, std::uint64_t bytes_per_device = 64u << 20);
  ~ScopedPool();
  const std::string& spec() const { return spec_; }

 private:
  std::string spec_;
};

// What one rank does; "" when all was right, else what was wrong. Runs in a process of its own.
using RankBody = std::function<std::string(std::uint32_t rank)>;

struct RankEnd {
  int status = 0;       // as waitpid gives it
  std::string message;  // what the body returned
  bool killed() const { return (status & 0x7f) != 0; }
};

// Processes that run a body each. The caller must not have threads.
class Ranks {
 public:
  Ranks(std::uint32_t count, RankBody body);
  ~Ranks();  // kills what still runs
  pid_t pid(std::uint32_t rank) const { return pids_[rank]; }
  // Waits for all, at most timeout_s; a rank that is still there then is killed and says so.
  std::vector<RankEnd> join(double timeout_s = 60);

 private:
  std::vector<pid_t> pids_;
  std::vector<int> pipes_;
};

// Runs and returns the messages of the ranks that were not right, one per line ("" if all were).
std::string run_ranks(std::uint32_t count, const RankBody& body, double timeout_s = 60);

// Maps the pool and joins, in a rank's body.
struct Member {
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Comm> comm;
};
Result<Member> join(const std::string& spec, std::uint32_t rank, std::uint32_t size,
                    const std::string& name = "test", Coherence coherence = Coherence::hardware,
                    std::uint32_t timeout_ms = 20000, std::uint64_t rank_bytes = 1u << 20,
                    const Tuning& tuning = {});

}  // namespace penstock::test
#endif
