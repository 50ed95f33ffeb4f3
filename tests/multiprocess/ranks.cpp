#include "ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace penstock::test {

ScopedPool::ScopedPool(std::uint32_t devices, std::uint64_t bytes_per_device) {
  static std::atomic<int> serial{0};
  spec_ = fmt::format("/dev/shm/penstock-test-{}-{}", ::getpid(), serial++);
  PoolConfig config;
  config.spec = spec_;
  config.devices = devices;
  config.bytes_per_device = bytes_per_device;
  const Status status = Pool::create(Platform::host(), config);
  PENSTOCK_CHECK(status.ok(), "{}", status.to_string());
}

ScopedPool::~ScopedPool() {
  const Status status = Pool::destroy(Platform::host(), spec_, true);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
}

Ranks::Ranks(std::uint32_t count, RankBody body) {
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    int ends[2];
    PENSTOCK_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "pipe");
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    PENSTOCK_CHECK(pid >= 0, "fork");
    if (pid == 0) {
      const std::string message = body(rank);
      if (!message.empty()) {
        (void)!::write(ends[1], message.data(), message.size());
      }
      ::_exit(message.empty() ? 0 : 1);
    }
    ::close(ends[1]);
    pids_.push_back(pid);
    pipes_.push_back(ends[0]);
  }
}

Ranks::~Ranks() {
  for (pid_t& pid : pids_) {
    if (pid <= 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  for (int pipe : pipes_) ::close(pipe);
}

std::vector<RankEnd> Ranks::join(double timeout_s) {
  std::vector<RankEnd> ends(pids_.size());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    for (;;) {
      const pid_t done = ::waitpid(pids_[rank], &ends[rank].status, WNOHANG);
      if (done != 0) break;
      if (std::chrono::steady_clock::now() > deadline) {
        ::kill(pids_[rank], SIGKILL);
        ::waitpid(pids_[rank], &ends[rank].status, 0);
        ends[rank].message = "did not end in time; ";
        break;
      }
      ::usleep(1000);
    }
    pids_[rank] = -1;
    char buffer[4096];
    for (ssize_t got; (got = ::read(pipes_[rank], buffer, sizeof buffer)) > 0;) {
      ends[rank].message.append(buffer, static_cast<std::size_t>(got));
    }
    if (ends[rank].killed() && ends[rank].message.empty()) {
      ends[rank].message = fmt::format("killed by signal {}", ends[rank].status & 0x7f);
    }
  }
  return ends;
}

std::string run_ranks(std::uint32_t count, const RankBody& body, double timeout_s) {
  Ranks ranks(count, body);
  std::string wrong;
  const std::vector<RankEnd> ends = ranks.join(timeout_s);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (ends[rank].status == 0 && ends[rank].message.empty()) continue;
    wrong +=
        fmt::format("rank {}: {} (status {:#x})\n", rank, ends[rank].message, ends[rank].status);
  }
  return wrong;
}

Result<Member> join(const std::string& spec, std::uint32_t rank, std::uint32_t size,
                    const std::string& name, Coherence coherence, std::uint32_t timeout_ms,
                    std::uint64_t rank_bytes, const Tuning& tuning) {
  Member member;
  MapOptions options;
  options.coherence = coherence;
  PENSTOCK_ASSIGN(member.pool, Pool::map(Platform::host(), spec, options));
  CommConfig config;
  config.name = name;
  config.rank = rank;
  config.size = size;
  config.timeout_ms = timeout_ms;
  config.rank_bytes = rank_bytes;
  config.tuning = tuning;
  PENSTOCK_ASSIGN(member.comm, Comm::join(*member.pool, config));
  return member;
}

}  // namespace penstock::test
