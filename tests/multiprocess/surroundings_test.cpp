// Comms in the surroundings that users have: containers, other users, pools that vanish, little
// shared memory. What the system does not permit here is skipped, and says so.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "fault_calls.h"
#include "penstock/comm/launch.h"
#include "penstock/comm/world.h"
#include "ranks.h"

namespace penstock::test {
namespace {

using testing::HasSubstr;
constexpr const char* kNotPermitted = "not permitted: ";
constexpr uid_t kNobody = 65534;

std::string sum(Comm& comm, int turn = 0) {
  std::string wrong;
  const Status status = call_and_check(comm, Collective::all_reduce, 500, turn, true, &wrong);
  return status.ok() ? wrong : status.to_string();
}

// Runs `body` in a child of this process, which is the first of a new pid namespace.
std::string in_pid_namespace(const std::function<std::string()>& body) {
  if (::unshare(CLONE_NEWPID) != 0) return kNotPermitted + std::string(std::strerror(errno));
  Ranks inner(1, [&](std::uint32_t) { return body(); });
  return inner.join()[0].message;
}

class Namespaces : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, Namespaces, testing::Values("pid", "ipc"),
                         [](const auto& param) { return param.param; });

// A container beside the host: the pool's file is all that they share. A death is noticed by the
// lock that the system drops, because pids of the other namespace mean nothing.
TEST_P(Namespaces, ARankInAnotherOneTakesPartAndItsDeathIsNoticed) {
  const bool pid = std::string(GetParam()) == "pid";
  const ScopedPool pool(1);
  Ranks ranks(2, [&](std::uint32_t rank) -> std::string {
    const auto take_part = [&]() -> std::string {
      auto member = join(pool.spec(), rank, 2, "test", Coherence::hardware, 8000);
      if (!member.ok()) return member.status().to_string();
      const std::string wrong = sum(*member->comm);
      if (!wrong.empty()) return "first sum: " + wrong;
      if (rank == 1) ::_exit(9);  // the first of a pid namespace cannot kill itself
      return sum(*member->comm, 1);
    };
    if (rank == 0) return take_part();
    if (pid) return in_pid_namespace(take_part);
    if (::unshare(CLONE_NEWIPC) != 0) return kNotPermitted + std::string(std::strerror(errno));
    return take_part();
  });
  const auto ends = ranks.join();
  if (ends[1].message.rfind(kNotPermitted, 0) == 0) GTEST_SKIP() << ends[1].message;
  EXPECT_THAT(ends[0].message, HasSubstr("peer_dead: comm 'test': rank 1 (pid "));
  EXPECT_THAT(ends[0].message, HasSubstr("died"));
}

TEST(Users, OneWithoutPermissionToThePoolIsToldSo) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  const ScopedPool pool(1);
  const std::string told = run_ranks(1, [&](std::uint32_t) -> std::string {
    if (::setuid(kNobody) != 0) return "setuid";
    return join(pool.spec(), 0, 1).status().to_string();
  });
  EXPECT_THAT(told, HasSubstr("permission_denied: " + pool.spec()));
}

// The pools of two users' jobs of one name do not collide.
TEST(Users, HaveNamesOfTheirOwnForTheirPools) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  Launch launch;
  launch.job = "train";
  const std::string mine = default_pool_spec(launch);
  const std::string theirs = run_ranks(1, [&](std::uint32_t) -> std::string {
    return ::setuid(kNobody) == 0 ? default_pool_spec(launch) : "setuid";
  });
  EXPECT_THAT(mine, HasSubstr("-0-"));
  EXPECT_THAT(theirs, HasSubstr("-65534-"));
  EXPECT_EQ(theirs.find(mine), std::string::npos);
}

// Somebody else has a file under the name: an error that says so, and the file is left alone.
TEST(Users, AFileOfAnotherUserUnderTheNameIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  const std::string path = fmt::format("/dev/shm/penstock-test-taken-{}", ::getpid());
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "theirs", 6), 6);
  ::close(fd);
  const std::string told = run_ranks(1, [&](std::uint32_t) -> std::string {
    if (::setuid(kNobody) != 0) return "setuid";
    PoolConfig config;
    config.spec = path;
    config.bytes_per_device = kMinDeviceBytes;
    return Pool::create(Platform::host(), config).to_string();
  });
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 6);
  EXPECT_THAT(told, HasSubstr(path));
  EXPECT_TRUE(told.find("permission_denied") != std::string::npos ||
              told.find("already_exists") != std::string::npos)
      << told;
  ::unlink(path.c_str());
}

// The mapping stays: whoever is in goes on and leaves in peace; whoever comes is told.
TEST(RemovedPool, RunningCommsGoOnAndNobodyNewComesIn) {
  const ScopedPool pool(1);
  EXPECT_EQ("", run_ranks(2, [&](std::uint32_t rank) -> std::string {
              auto member = join(pool.spec(), rank, 2);
              if (!member.ok()) return member.status().to_string();
              std::string wrong = sum(*member->comm);
              if (!wrong.empty()) return wrong;
              if (rank == 0) {
                // While it is mapped only by force.
                const Status busy = Pool::destroy(Platform::host(), pool.spec());
                if (busy.code() != Code::busy) return "not busy: " + busy.to_string();
                const Status gone = Pool::destroy(Platform::host(), pool.spec(), true);
                if (!gone.ok()) return gone.to_string();
              }
              wrong = sum(*member->comm, 1);
              if (!wrong.empty()) return "after it was removed: " + wrong;
              if (member->pool->still_named()) return "still named";
              const Status late = join(pool.spec(), 0, 1, "late").status();
              return late.code() == Code::not_found ? "" : "joined late: " + late.to_string();
            }));
  PoolConfig config;  // for the scope's end
  config.spec = pool.spec();
  config.bytes_per_device = kMinDeviceBytes;
  EXPECT_TRUE(Pool::create(Platform::host(), config).ok());
}

// As in a container: the pool does not fit, which is said before anything is touched.
TEST(SmallSharedMemory, SaysWhatIsNeededAndWhatThereIs) {
  const std::string told = run_ranks(1, [&](std::uint32_t) -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") != 0) {
      return kNotPermitted + std::string(std::strerror(errno));
    }
    PoolConfig config;
    config.spec = "/dev/shm/pool";
    config.devices = 2;
    config.bytes_per_device = 48u << 20;
    const Status status = Pool::create(Platform::host(), config);
    if (::access("/dev/shm/pool.0", F_OK) == 0 || ::access("/dev/shm/pool.1", F_OK) == 0) {
      return "something is left: " + status.to_string();
    }
    // What fits works.
    config.bytes_per_device = 24u << 20;
    const Status smaller = Pool::create(Platform::host(), config);
    if (!smaller.ok()) return "the smaller one: " + smaller.to_string();
    auto member = join(config.spec, 0, 1);
    if (!member.ok()) return member.status().to_string();
    const std::string wrong = sum(*member->comm);
    return wrong.empty() ? status.to_string() : wrong;
  });
  if (told.find(kNotPermitted) != std::string::npos) GTEST_SKIP() << told;
  EXPECT_THAT(told, HasSubstr("no_space: /dev/shm/pool.1"));
  EXPECT_THAT(told, HasSubstr("(48.0 MiB)"));  // what is needed
  EXPECT_THAT(told, HasSubstr("(64.0 MiB)"));  // what there is
}

}  // namespace
}  // namespace penstock::test
