#include "penstock/base/platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "penstock/base/forwarding_platform_test.h"
#include "penstock/base/process_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class PlatformFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/penstock-platform-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    (void)platform_.remove(path());
    ::rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/file"; }
  std::unique_ptr<File> make() {
    auto file = platform_.open(path(), OpenMode::create_new);
    EXPECT_EQ(file.status().to_string(), "ok");
    return std::move(file).value();
  }
  std::unique_ptr<File> open() {
    auto file = platform_.open(path(), OpenMode::read_write);
    EXPECT_EQ(file.status().to_string(), "ok");
    return std::move(file).value();
  }

  Platform& platform_ = Platform::host();
  std::string folder_;
};

TEST_F(PlatformFiles, open_reports_what_is_wrong) {
  EXPECT_EQ(platform_.open(path(), OpenMode::read_write).status().code(), Code::not_found);
  EXPECT_FALSE(platform_.exists(path()));
  auto file = make();
  EXPECT_TRUE(platform_.exists(path()));
  const Status twice = platform_.open(path(), OpenMode::create_new).status();
  EXPECT_EQ(twice.code(), Code::already_exists);
  EXPECT_THAT(twice.message(), HasSubstr(path()));
  EXPECT_EQ(platform_.open(folder_, OpenMode::read_write).status().code(), Code::invalid_argument);
  EXPECT_EQ(platform_.open(path() + "/x", OpenMode::read_write).status().code(), Code::not_found);
  EXPECT_EQ(platform_.remove(folder_ + "/none").code(), Code::not_found);
}

TEST_F(PlatformFiles, a_pipe_or_another_device_is_no_memory_device) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(platform_.open(pipe, OpenMode::read_write).status().code(), Code::invalid_argument);
  EXPECT_EQ(platform_.open(pipe, OpenMode::read_only).status().code(), Code::invalid_argument);
  ::unlink(pipe.c_str());
  auto null = platform_.open("/dev/null", OpenMode::read_write);
  ASSERT_TRUE(null.ok());
  EXPECT_TRUE((*null)->is_device());
  EXPECT_THAT((*null)->size().status().message(), HasSubstr("device DAX"));
}

TEST_F(PlatformFiles, reads_and_writes_at_offsets) {
  auto file = make();
  EXPECT_EQ(file->write_at(3, "abc", 3).to_string(), "ok");
  char text[8] = {};
  EXPECT_EQ(file->read_at(0, text, sizeof text).value(), 6u);
  EXPECT_EQ(std::memcmp(text, "\0\0\0abc", 6), 0);
  EXPECT_EQ(file->read_at(6, text, sizeof text).value(), 0u);
  EXPECT_EQ(file->size().value(), 6u);
}

TEST_F(PlatformFiles, reserve_backs_every_page_and_sets_the_size) {
  auto file = make();
  ASSERT_EQ(file->reserve(1 << 20).to_string(), "ok");
  struct stat info;
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 1 << 20);
  EXPECT_GE(info.st_blocks * 512, 1 << 20);
  ASSERT_EQ(file->reserve(4096).to_string(), "ok");
  EXPECT_EQ(file->size().value(), 4096u);
  ASSERT_EQ(file->reserve(0).to_string(), "ok");
  EXPECT_EQ(file->size().value(), 0u);
}

TEST_F(PlatformFiles, reserve_says_what_is_needed_and_what_there_is) {
  auto file = make();
  const Status status = file->reserve(std::uint64_t{1} << 50);
  EXPECT_EQ(status.code(), Code::no_space);
  EXPECT_THAT(status.message(), HasSubstr("needs 1125899906842624 bytes"));
  EXPECT_EQ(file->size().value(), 0u);
}

TEST_F(PlatformFiles, mappings_are_shared_and_outlive_the_file) {
  auto file = make();
  ASSERT_EQ(file->reserve(8192).to_string(), "ok");
  std::byte* first = file->map(8192).value();
  std::byte* second = file->map(8192).value();
  ASSERT_NE(first, second);
  file.reset();
  first[5000] = std::byte{42};
  EXPECT_EQ(second[5000], std::byte{42});
  EXPECT_EQ(platform_.unmap(first, 8192).to_string(), "ok");
  EXPECT_EQ(platform_.unmap(second, 8192).to_string(), "ok");
  EXPECT_EQ(open()->map(0).status().code(), Code::invalid_argument);
}

TEST_F(PlatformFiles, locks_belong_to_the_open_file) {
  auto first = make();
  auto second = open();
  constexpr std::uint64_t kAt = std::uint64_t{1} << 60;
  EXPECT_FALSE(second->is_locked(kAt, 1).value());
  ASSERT_EQ(first->try_lock(kAt, 1).to_string(), "ok");
  EXPECT_FALSE(first->is_locked(kAt, 1).value()) << "its own lock is none of another's";
  EXPECT_TRUE(second->is_locked(kAt, 1).value());
  EXPECT_TRUE(second->is_locked(kAt - 1, 2).value());
  EXPECT_FALSE(second->is_locked(kAt + 1, 1).value());
  EXPECT_EQ(second->try_lock(kAt, 1).code(), Code::busy);
  EXPECT_EQ(second->try_lock_shared(kAt, 1).code(), Code::busy);
  const std::uint64_t before_ns = platform_.now_ns();
  EXPECT_EQ(second->lock(kAt, 1, 20).code(), Code::deadline_exceeded);
  EXPECT_GE(platform_.now_ns() - before_ns, 20'000'000u);
  ASSERT_EQ(second->try_lock(kAt + 1, 1).to_string(), "ok") << "a byte of its own";
  ASSERT_EQ(first->unlock(kAt, 1).to_string(), "ok");
  EXPECT_EQ(second->lock(kAt, 1, 1000).to_string(), "ok");
  second.reset();
  EXPECT_FALSE(first->is_locked(kAt, 2).value()) << "closing drops the locks";
}

TEST_F(PlatformFiles, shared_locks_go_together) {
  auto first = make();
  auto second = open();
  auto third = open();
  ASSERT_EQ(first->try_lock_shared(7, 1).to_string(), "ok");
  ASSERT_EQ(second->try_lock_shared(7, 1).to_string(), "ok");
  EXPECT_EQ(third->try_lock(7, 1).code(), Code::busy);
  first.reset();
  EXPECT_TRUE(third->is_locked(7, 1).value());
  second.reset();
  EXPECT_FALSE(third->is_locked(7, 1).value());
}

TEST_F(PlatformFiles, a_killed_process_leaves_no_lock) {
  auto file = make();
  Mailbox locked;
  Child child([&] {
    auto own = open();
    EXPECT_TRUE(own->try_lock(9, 1).ok());
    locked.send();
    ::pause();
  });
  ASSERT_EQ(locked.receive(), 1);
  EXPECT_TRUE(file->is_locked(9, 1).value());
  child.kill();
  EXPECT_FALSE(file->is_locked(9, 1).value());
}

TEST_F(PlatformFiles, identity_tells_a_file_from_a_later_one) {
  auto file = make();
  EXPECT_EQ(platform_.file_identity(path()), file->identity());
  EXPECT_NE(file->identity(), 0u);
  ASSERT_TRUE(platform_.remove(path()).ok());
  EXPECT_EQ(platform_.file_identity(path()), 0u);
  auto later = make();  // the first one is still open, so its inode is not reused
  EXPECT_NE(platform_.file_identity(path()), file->identity());
}

TEST_F(PlatformFiles, a_small_tmpfs_is_no_bus_error) {
  const std::string mount = folder_ + "/small";
  ASSERT_EQ(::mkdir(mount.c_str(), 0700), 0);
  if (::mount("tmpfs", mount.c_str(), "tmpfs", 0, "size=4m") != 0) {
    ::rmdir(mount.c_str());
    GTEST_SKIP() << "mounting a tmpfs needs more rights: " << std::strerror(errno);
  }
  {
    auto file = platform_.open(mount + "/file", OpenMode::create_new);
    EXPECT_TRUE(file.ok());
    const Status status = (*file)->reserve(8 << 20);
    EXPECT_EQ(status.code(), Code::no_space);
    EXPECT_THAT(status.message(), HasSubstr("needs 8388608 bytes"));
    EXPECT_THAT(status.message(), HasSubstr("of 4194304 bytes"));
    EXPECT_EQ((*file)->size().value(), 0u);
    EXPECT_EQ((*file)->reserve(2 << 20).to_string(), "ok");
  }
  EXPECT_EQ(::umount(mount.c_str()), 0);
  ::rmdir(mount.c_str());
}

TEST(Platform, clock_and_random) {
  Platform& platform = Platform::host();
  const std::uint64_t before = platform.now_ns();
  platform.sleep_ns(3'000'000);
  EXPECT_GE(platform.now_ns() - before, 3'000'000u);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(platform.random());
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_GE(platform.cpu_count(), 1u);
}

TEST(Platform, cache_control_keeps_the_bytes) {
  Platform& platform = Platform::host();
  alignas(64) unsigned char bytes[4096];
  std::memset(bytes, 7, sizeof bytes);
  platform.write_back(bytes + 3, 1000);
  platform.store_fence();
  platform.invalidate(bytes + 63, 2);
  platform.invalidate(bytes, sizeof bytes);
  platform.full_fence();
  platform.write_back(nullptr, 0);
  platform.invalidate(nullptr, 0);
  for (unsigned char byte : bytes) ASSERT_EQ(byte, 7);
}

TEST(Platform, knows_itself_also_in_a_forked_child) {
  Platform& platform = Platform::host();
  const ProcessIdentity self = platform.self();
  const std::uint64_t generation = platform.process_generation();
  EXPECT_EQ(self.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_NE(self.start_time, 0u);
  EXPECT_NE(self.pid_namespace, 0u);
  EXPECT_NE(self.boot_id, (std::array<std::uint8_t, 16>{}));
  EXPECT_EQ(platform.liveness(self), Liveness::alive);
  Child child([&] {
    const ProcessIdentity own = platform.self();
    EXPECT_EQ(own.pid, static_cast<std::uint32_t>(::getpid()));
    EXPECT_NE(own, self);
    EXPECT_GT(platform.process_generation(), generation);
    EXPECT_EQ(own.boot_id, self.boot_id);
    EXPECT_EQ(platform.liveness(self), Liveness::alive) << "the parent lives";
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Platform, liveness_of_a_child) {
  Platform& platform = Platform::host();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Child child([&] {
    const ProcessIdentity own = platform.self();
    EXPECT_EQ(::write(ends[1], &own, sizeof own), static_cast<ssize_t>(sizeof own));
    ::pause();
  });
  ProcessIdentity identity;
  ASSERT_EQ(::read(ends[0], &identity, sizeof identity), static_cast<ssize_t>(sizeof identity));
  EXPECT_EQ(platform.liveness(identity), Liveness::alive);
  ProcessIdentity earlier = identity;
  earlier.start_time -= 1;
  EXPECT_EQ(platform.liveness(earlier), Liveness::dead) << "its pid was given anew";
  ProcessIdentity elsewhere = identity;
  elsewhere.pid_namespace += 1;
  EXPECT_EQ(platform.liveness(elsewhere), Liveness::unknown);
  ProcessIdentity other_boot = identity;
  other_boot.boot_id[0] ^= 1;
  EXPECT_EQ(platform.liveness(other_boot), Liveness::unknown);

  EXPECT_EQ(platform.process_state(earlier), '?');
  EXPECT_EQ(platform.process_state(elsewhere), '?');
  siginfo_t info;
  ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED), 0);
  EXPECT_EQ(platform.process_state(identity), 'T');
  EXPECT_EQ(platform.liveness(identity), Liveness::alive) << "stopped is not dead";

  ASSERT_EQ(::kill(child.pid(), SIGKILL), 0);
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(platform.liveness(identity), Liveness::dead) << "a zombie";
  child.kill();
  EXPECT_EQ(platform.liveness(identity), Liveness::dead);
  ::close(ends[0]);
  ::close(ends[1]);
}

// Time passes only when somebody waits.
class WaitingPlatform final : public ForwardingPlatform {
 public:
  std::uint64_t now_ns() override { return now_ns_; }
  void pause() override { ++pauses, now_ns_ += 40; }
  void yield() override { ++yields, now_ns_ += 500; }
  void sleep_ns(std::uint64_t ns) override {
    ++sleeps, longest = std::max(longest, ns), now_ns_ += ns;
  }
  int pauses = 0, yields = 0, sleeps = 0;
  std::uint64_t longest = 0;

 private:
  std::uint64_t now_ns_ = 1;
};

TEST(Backoff, spins_then_yields_then_sleeps) {
  WaitingPlatform platform;
  Backoff backoff(platform, false);
  for (int i = 0; i < 100; ++i) backoff.turn();
  EXPECT_EQ(platform.pauses, 100);
  EXPECT_EQ(platform.yields, 0);
  for (int i = 0; i < 10000; ++i) backoff.turn();
  EXPECT_EQ(platform.pauses, 2000);
  // A millisecond of yields of 500 ns, looked at every 16.
  EXPECT_GE(platform.yields, 2000);
  EXPECT_LE(platform.yields, 2016);
  EXPECT_EQ(platform.sleeps, 10100 - platform.pauses - platform.yields);
  EXPECT_LE(platform.longest, 1'000'000u);
}

TEST(Backoff, yields_at_once_when_oversubscribed) {
  WaitingPlatform platform;
  Backoff backoff(platform, true);
  backoff.turn();
  EXPECT_EQ(platform.pauses, 0);
  EXPECT_EQ(platform.yields, 1);
  for (int i = 0; i < 3000; ++i) backoff.turn();
  EXPECT_EQ(platform.pauses, 0);
  EXPECT_GT(platform.sleeps, 0);
}

}  // namespace
}  // namespace penstock
