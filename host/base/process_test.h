// Child processes for tests. Fork before any thread is started.
#ifndef PENSTOCK_BASE_PROCESS_TEST_H_
#define PENSTOCK_BASE_PROCESS_TEST_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace penstock {

// Runs `body` in a child; it ends with 1 if an expectation failed there. Killed and reaped when the
// handle goes.
class Child {
 public:
  template <typename Body>
  explicit Child(Body body) {
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    body();
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // The exit status, or -signal.
  int wait() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &status, 0) != pid_) return -1000;
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)wait();
  }

 private:
  pid_t pid_ = 0;
};

// A word that one process sends and another waits for.
class Mailbox {
 public:
  Mailbox() {
    if (::pipe(ends_) != 0) std::abort();
  }
  ~Mailbox() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  void send(int value = 1) const {
    if (::write(ends_[1], &value, sizeof value) != sizeof value) std::abort();
  }
  int receive() const {
    int value = -1;
    return ::read(ends_[0], &value, sizeof value) == sizeof value ? value : -1;
  }

 private:
  int ends_[2];
};

}  // namespace penstock
#endif
