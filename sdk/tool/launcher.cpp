#include "launcher.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "command.h"
#include "guardian.h"
#include "line_forwarder.h"

namespace penstock::tool {
namespace {

constexpr int kExitTimeout = 124;
constexpr auto kKillAfter = std::chrono::seconds(2);          // from SIGTERM to SIGKILL
constexpr auto kFlushAfter = std::chrono::milliseconds(200);  // of a line that does not end

using Clock = std::chrono::steady_clock;

sigset_t handled_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&set, signal);
  return set;
}

struct Rank {
  pid_t pid = -1;
  bool running = false;
  std::unique_ptr<LineForwarder> out;
  std::unique_ptr<LineForwarder> err;
};

struct Pipe {
  int read = -1;
  int write = -1;
  bool open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
};

void pin_to_cpu(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

// In the child, up to exec. Returns only the reason why it could not be executed.
int become_rank(const LaunchConfig& config, std::uint32_t rank, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitWrong);  // it died before prctl
  // A terminal's input belongs to the launcher's process group; a file or pipe goes to rank 0.
  if (rank > 0 || ::isatty(STDIN_FILENO) != 0) {
    const int null = ::open("/dev/null", O_RDONLY);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
  }
  for (const auto& [name, value] : config.environment) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  ::setenv("PENSTOCK_RANK", std::to_string(rank).c_str(), 1);
  if (!config.cpus.empty()) pin_to_cpu(config.cpus[rank % config.cpus.size()]);
  ::signal(SIGPIPE, SIG_DFL);
  const sigset_t handled = handled_signals();
  ::sigprocmask(SIG_UNBLOCK, &handled, nullptr);
  std::vector<char*> argv;
  for (const std::string& word : config.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  if (config.command[0] == "penstock") {
    ::execv("/proc/self/exe", argv.data());
  } else {
    ::execvp(argv[0], argv.data());
  }
  return errno;
}

// One run. The phases: all is well; someone failed or a signal came (stop_at_ is when the rest is
// terminated); terminated (then killed at stop_at_).
class Run {
 public:
  Run(const LaunchConfig& config, int signal_fd)
      : config_(config), signal_fd_(signal_fd), ranks_(config.ranks) {}

  int run() {
    for (std::uint32_t rank = 0; rank < config_.ranks; ++rank) {
      const int failure = start(rank);
      if (failure == 0) continue;
      signal_all(SIGKILL);
      return fail_usage(
          "run", fmt::format("cannot run '{}': {}", config_.command[0], std::strerror(failure)));
    }
    if (config_.timeout_s > 0) {
      timeout_at_ = Clock::now() + std::chrono::seconds(config_.timeout_s);
    }
    while (running_ > 0) turn();
    drain();
    // Whatever the ranks started and left running.
    for (const Rank& rank : ranks_) ::kill(-rank.pid, SIGKILL);
    return status_;
  }

 private:
  enum class Phase { fine, grace, terminated, killed };

  int start(std::uint32_t rank) {
    Pipe out, err, failure;
    if (!out.open() || !err.open() || !failure.open()) return errno;
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return errno;
    if (pid == 0) {
      ::dup2(out.write, STDOUT_FILENO);
      ::dup2(err.write, STDERR_FILENO);
      const int reason = become_rank(config_, rank, parent);
      (void)!::write(failure.write, &reason, sizeof reason);
      ::_exit(kExitUsage);
    }
    ::setpgid(pid, pid);  // here, too: whoever comes first
    guardian_.watch(pid);
    for (const int fd : {out.write, err.write, failure.write}) ::close(fd);
    int reason = 0;
    if (::read(failure.read, &reason, sizeof reason) != sizeof reason) reason = 0;
    ::close(failure.read);
    const std::string prefix = config_.tag_output ? fmt::format("[{}] ", rank) : "";
    ranks_[rank].pid = pid;
    ranks_[rank].running = true;
    ranks_[rank].out = std::make_unique<LineForwarder>(out.read, STDOUT_FILENO, prefix);
    ranks_[rank].err = std::make_unique<LineForwarder>(err.read, STDERR_FILENO, prefix);
    ++running_;
    return reason;
  }

  void turn() {
    std::vector<struct pollfd> fds = {{signal_fd_, POLLIN, 0}};
    bool partial = false;
    for (const LineForwarder* forwarder : forwarders()) {
      if (forwarder->fd() >= 0) fds.push_back({forwarder->fd(), POLLIN, 0});
      partial = partial || forwarder->has_partial();
    }
    const int ready = ::poll(fds.data(), fds.size(), poll_timeout_ms(partial));
    bool writable = true;
    for (LineForwarder* forwarder : forwarders()) {
      writable = forwarder->forward() && (ready != 0 || forwarder->flush(false)) && writable;
    }
    if (!writable && phase_ == Phase::fine) {
      status_ = 128 + SIGPIPE;
      terminate();
    }
    struct signalfd_siginfo info;
    while (::read(signal_fd_, &info, sizeof info) == sizeof info) {
      handle_signal(static_cast<int>(info.ssi_signo));
    }
    reap();
    keep_time();
  }

  std::vector<LineForwarder*> forwarders() const {
    std::vector<LineForwarder*> all;
    for (const Rank& rank : ranks_) {
      if (rank.out) all.push_back(rank.out.get());
      if (rank.err) all.push_back(rank.err.get());
    }
    return all;
  }

  int poll_timeout_ms(bool partial) const {
    auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::hours(1));
    const auto until = [](Clock::time_point at) {
      return std::chrono::ceil<std::chrono::milliseconds>(at - Clock::now());
    };
    if (partial) wait = std::min(wait, kFlushAfter);
    if (phase_ != Phase::fine && phase_ != Phase::killed) wait = std::min(wait, until(stop_at_));
    if (timeout_at_ != Clock::time_point()) wait = std::min(wait, until(timeout_at_));
    return std::max(0, static_cast<int>(wait.count()));
  }

  void handle_signal(int signal) {
    if (signal == SIGCHLD) return;
    if (interrupted_) {  // asked twice
      signal_all(SIGKILL);
      phase_ = Phase::killed;
      return;
    }
    interrupted_ = true;
    if (status_ == 0) status_ = 128 + signal;
    std::fprintf(stderr, "penstock: run: %s, passed on to the ranks\n", ::strsignal(signal));
    signal_all(signal);
    begin_grace();
  }

  void reap() {
    int state = 0;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!ranks_[rank].running) continue;
      while (ranks_[rank].running &&
             ::waitpid(ranks_[rank].pid, &state, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
        if (WIFSTOPPED(state) || WIFCONTINUED(state)) {
          paused(rank, state);
        } else {
          ended(rank, state);
        }
      }
    }
  }

  // The others name it when their deadline passes; here it is said at once who stopped, and why.
  void paused(std::uint32_t rank, int state) const {
    if (phase_ != Phase::fine) return;
    const std::string what = WIFCONTINUED(state)
                                 ? "goes on"
                                 : fmt::format("was stopped by signal {} ({})", WSTOPSIG(state),
                                               ::strsignal(WSTOPSIG(state)));
    std::fprintf(stderr, "penstock: run: rank %u (pid %d) %s\n", rank, ranks_[rank].pid,
                 what.c_str());
  }

  // What the signal often means, as the rest of a sentence.
  static const char* reason_of(int signal) {
    if (signal == SIGKILL) return ", perhaps by the system for want of memory";
    if (signal == SIGBUS) return ": memory that is mapped but not there, such as a full /dev/shm";
    return "";
  }

  void ended(std::uint32_t rank, int state) {
    ranks_[rank].running = false;
    --running_;
    const bool killed = WIFSIGNALED(state);
    if ((!killed && WEXITSTATUS(state) == 0) || phase_ != Phase::fine) return;
    status_ = killed ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
    const std::string how =
        killed ? fmt::format("was killed by signal {} ({}){}", WTERMSIG(state),
                             ::strsignal(WTERMSIG(state)), reason_of(WTERMSIG(state)))
               : fmt::format("exited with status {}", WEXITSTATUS(state));
    const std::string rest =
        running_ > 0 ? fmt::format("; the others are terminated unless they end within {} s",
                                   config_.grace_s)
                     : "";
    // What the rank itself said comes first.
    if (ranks_[rank].out) ranks_[rank].out->forward();
    if (ranks_[rank].err) ranks_[rank].err->forward();
    std::fprintf(stderr, "penstock: run: rank %u (pid %d) %s%s\n", rank, ranks_[rank].pid,
                 how.c_str(), rest.c_str());
    begin_grace();
  }

  void keep_time() {
    const Clock::time_point now = Clock::now();
    if (timeout_at_ != Clock::time_point() && now >= timeout_at_ && running_ > 0) {
      timeout_at_ = Clock::time_point();
      status_ = kExitTimeout;
      std::fprintf(stderr, "penstock: run: not done after %llu s; terminating %u ranks\n",
                   static_cast<unsigned long long>(config_.timeout_s), running_);
      terminate();
    }
    if (phase_ == Phase::grace && now >= stop_at_) {
      terminate();
    } else if (phase_ == Phase::terminated && now >= stop_at_) {
      signal_all(SIGKILL);
      phase_ = Phase::killed;
    }
  }

  void begin_grace() {
    if (phase_ != Phase::fine) return;
    phase_ = Phase::grace;
    stop_at_ = Clock::now() + std::chrono::seconds(config_.grace_s);
  }

  void terminate() {
    signal_all(SIGTERM);
    signal_all(SIGCONT);  // a stopped one would not notice
    phase_ = Phase::terminated;
    stop_at_ = Clock::now() + kKillAfter;
  }

  void signal_all(int signal) {
    for (const Rank& rank : ranks_) {
      if (rank.running) ::kill(-rank.pid, signal);
    }
  }

  // The ranks have ended; what they wrote last is in the pipes.
  void drain() {
    for (LineForwarder* forwarder : forwarders()) {
      forwarder->forward();
      forwarder->flush(true);
    }
  }

  const LaunchConfig& config_;
  const int signal_fd_;
  Guardian guardian_;
  std::vector<Rank> ranks_;
  std::uint32_t running_ = 0;
  Phase phase_ = Phase::fine;
  bool interrupted_ = false;
  int status_ = 0;
  Clock::time_point stop_at_;
  Clock::time_point timeout_at_;
};

}  // namespace

Launcher::Launcher() {
  const sigset_t handled = handled_signals();
  ::sigprocmask(SIG_BLOCK, &handled, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signal_fd_ = ::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
}

Launcher::~Launcher() {
  if (signal_fd_ >= 0) ::close(signal_fd_);
}

int Launcher::run(const LaunchConfig& config) {
  if (signal_fd_ < 0) return fail_usage("run", "the system gives no signalfd");
  return Run(config, signal_fd_).run();
}

}  // namespace penstock::tool
