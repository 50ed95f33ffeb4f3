#include "replay_shared.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "penstock/sched/binder.h"

namespace penstock::tool {
namespace {

// Removes the pool at the end of the scope.
class TemporaryPool {
 public:
  explicit TemporaryPool(std::string spec) : spec_(std::move(spec)) {}
  ~TemporaryPool() { static_cast<void>(Pool::destroy(Platform::host(), spec_, true)); }
  TemporaryPool(const TemporaryPool&) = delete;
  TemporaryPool& operator=(const TemporaryPool&) = delete;

 private:
  std::string spec_;
};

// The children; those that still run at the end of the scope are killed.
class Children {
 public:
  ~Children() {
    for (const Child& child : list_) {
      if (child.fd >= 0) ::close(child.fd);
      if (child.ended) continue;
      ::kill(child.pid, SIGKILL);
      ::waitpid(child.pid, nullptr, 0);
    }
  }
  // `body` gives what is sent to the parent.
  template <typename Body>
  Status start(Body body) {
    int ends[2];
    if (::pipe(ends) != 0) return error(Code::io_error, "replay: no pipe");
    const pid_t pid = ::fork();
    if (pid < 0) return error(Code::no_space, "replay: no process for a scheduler");
    if (pid > 0) {
      ::close(ends[1]);
      list_.push_back({pid, ends[0], false});
      return {};
    }
    const Result<SharedReplayShare> share = body();
    if (!share.ok()) {
      std::fprintf(stderr, "penstock: replay: %s\n", share.status().to_string().c_str());
      ::_exit(1);
    }
    const bool sent = ::write(ends[1], &share.value(), sizeof(SharedReplayShare)) ==
                      static_cast<ssize_t>(sizeof(SharedReplayShare));
    ::_exit(sent ? 0 : 1);
  }
  // Whether all have ended, or one has ended badly, which status() then says.
  bool all_ended() {
    bool all = true;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      Child& child = list_[i];
      int status = 0;
      if (!child.ended && ::waitpid(child.pid, &status, WNOHANG) == child.pid) {
        child.ended = true;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
          status_ = error(Code::peer_dead, "scheduler {} ended with wait status {:#x}", i, status);
        }
      }
      all = all && child.ended;
    }
    return all || !status_.ok();
  }
  Result<std::vector<SharedReplayShare>> shares() {
    PENSTOCK_TRY(status_);
    std::vector<SharedReplayShare> shares(list_.size());
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (::read(list_[i].fd, &shares[i], sizeof shares[i]) !=
          static_cast<ssize_t>(sizeof shares[i])) {
        return error(Code::peer_dead, "scheduler {} said nothing", i);
      }
    }
    return shares;
  }

 private:
  struct Child {
    pid_t pid;
    int fd;
    bool ended;
  };
  std::vector<Child> list_;
  Status status_;
};

}  // namespace

Result<SharedReplayResult> replay_in_processes(ReplayConfig config,
                                               const SharedReplayConfig& shared) {
  Platform& platform = Platform::host();
  PoolConfig pool_config;
  pool_config.spec = fmt::format("/dev/shm/penstock-replay-{}", ::getpid());
  pool_config.bytes_per_device = shared_replay_bytes(config, shared);
  PENSTOCK_TRY(Pool::create(platform, pool_config));
  const TemporaryPool temporary(pool_config.spec);
  PENSTOCK_ASSIGN(const auto pool, Pool::map(platform, pool_config.spec));
  config.pool = pool.get();
  config.table_name = "replay";
  PENSTOCK_ASSIGN(const SharedReplay replay, prepare_shared_replay(config, shared));
  Children children;
  for (std::uint32_t i = 0; i < shared.schedulers; ++i) {
    PENSTOCK_TRY(children.start([&]() -> Result<SharedReplayShare> {
      PENSTOCK_ASSIGN(const auto mine, Pool::map(platform, pool_config.spec));
      return run_shared_replay(*mine, replay, shared, i);
    }));
  }
  {
    PENSTOCK_ASSIGN(const auto binder, Binder::open(*pool, replay.name, 0));
    PENSTOCK_TRY(binder->serve([&children] { return !children.all_ended(); }));
  }
  PENSTOCK_ASSIGN(const auto shares, children.shares());
  return finish_shared_replay(*pool, config, replay, shares);
}

}  // namespace penstock::tool
