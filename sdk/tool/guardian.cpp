#include "guardian.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

namespace penstock::tool {
namespace {

constexpr pid_t kDismissed = 0;

// Reads groups until the launcher's end of the pipe is closed, which the system does in any case.
[[noreturn]] void guard(int from) {
  ::setsid();  // a terminal's signals are the launcher's
  // Whoever waits for the end of the launcher's output must not wait for this process.
  const int null = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  // Nor may it keep the locks by which others see that the launcher lives.
  constexpr int kFrom = STDERR_FILENO + 1;
  ::dup2(from, kFrom);
  ::close_range(kFrom + 1, ~0u, 0);
  std::vector<pid_t> groups;
  pid_t group = 0;
  while (::read(kFrom, &group, sizeof group) == sizeof group) {
    if (group == kDismissed) ::_exit(0);
    groups.push_back(group);
  }
  for (const pid_t left : groups) ::kill(-left, SIGKILL);
  ::_exit(0);
}

}  // namespace

Guardian::Guardian() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return;
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(fds[1]);
    guard(fds[0]);
  }
  ::close(fds[0]);
  to_ = fds[1];
}

Guardian::~Guardian() {
  watch(kDismissed);
  if (to_ >= 0) ::close(to_);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

void Guardian::watch(pid_t group) {
  if (to_ >= 0) (void)!::write(to_, &group, sizeof group);
}

}  // namespace penstock::tool
