#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "penstock/base/memory_linux.h"
#include "penstock/base/platform.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(KernelList, HoldsNumbersAndRanges) {
  EXPECT_THAT(parse_kernel_list("0-2,8\n"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(parse_kernel_list("3"), ElementsAre(3));
  EXPECT_THAT(parse_kernel_list(""), IsEmpty());
  EXPECT_THAT(parse_kernel_list("1,x"), ElementsAre(1));
  EXPECT_THAT(parse_kernel_list("0-99999999"), IsEmpty());
}

int memory_policy() {
  int policy = -1;
  ::syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, nullptr, 0UL);
  return policy;
}

TEST(BindMemory, OneNodeLeavesNothingToChoose) {
  const std::vector<int> nodes = memory_nodes();
  ASSERT_FALSE(nodes.empty());
  const Status status = bind_memory(nodes.back());
  if (nodes.size() == 1) {
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_THAT(status.message(), HasSubstr("one memory node"));
    EXPECT_EQ(memory_policy(), 0);
    return;
  }
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(memory_policy(), 2);  // MPOL_BIND
  EXPECT_EQ(bind_memory(nodes.back() + 1).code(), Code::invalid_argument);
  EXPECT_TRUE(bind_memory(-1).ok());
  EXPECT_EQ(memory_policy(), 0);
}

// In a mount namespace of its own, as root only: a tmpfs whose option says so gives huge pages.
// Exit status of the child: 0 fine, 1 not, 77 cannot be tried here.
int try_huge_tmpfs(const char* option) {
  if (::unshare(CLONE_NEWNS) != 0) return 77;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  char folder[] = "/tmp/huge-test-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 77;
  const std::string options = std::string("size=16m,huge=") + option;
  const bool mounted = ::mount("tmpfs", folder, "tmpfs", 0, options.c_str()) == 0;
  if (!mounted) {
    ::rmdir(folder);
    return 77;
  }
  int status = 1;
  {
    constexpr std::uint64_t kBytes = std::uint64_t{8} << 20;
    const std::string path = std::string(folder) + "/pool";
    auto file = Platform::host().open(path, OpenMode::create_new, 0600);
    if (file.ok() && huge_pages_of(path) == option && (*file)->reserve(kBytes).ok()) {
      auto data = (*file)->map(kBytes);
      if (data.ok()) {
        for (std::uint64_t at = 0; at < kBytes; at += 4096) (*data)[at] = std::byte{1};
        std::ifstream maps("/proc/self/smaps");
        bool ours = false;
        std::uint64_t huge_kib = 0;
        for (std::string line; std::getline(maps, line);) {
          if (line.find("/pool") != std::string::npos) ours = true;
          if (ours && line.rfind("ShmemPmdMapped:", 0) == 0) {
            huge_kib = std::stoull(line.substr(15));
            break;
          }
        }
        const bool wanted = std::string(option) != "never";
        status = wanted == (huge_kib > 0) ? 0 : 1;
        (void)Platform::host().unmap(*data, kBytes);
      }
    }
  }
  ::umount2(folder, MNT_DETACH);
  ::rmdir(folder);
  return status;
}

TEST(HugePages, AFileHasThemWhereItsFileSystemGivesThem) {
  for (const char* option : {"never", "advise", "always"}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) std::_Exit(try_huge_tmpfs(option));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mounting here";
    EXPECT_EQ(WEXITSTATUS(status), 0) << option;
  }
}

TEST(HugePages, OtherFilesHaveNone) {
  EXPECT_EQ(huge_pages_of("/proc/self/stat"), "never");
  EXPECT_EQ(huge_pages_of("/absent"), "never");
}

// A file of a hugetlbfs can only be mapped; reading and writing go through a mapping.
TEST(HugePages, AFileOfAHugetlbfsIsReadAndWrittenLikeAnyOther) {
  constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;
  for (const std::string& mount : mount_points("hugetlbfs")) {
    const std::string path = mount + "/penstock-memory-test";
    auto file = Platform::host().open(path, OpenMode::create_new, 0600);
    if (!file.ok()) continue;
    const Status reserved = (*file)->reserve(kBytes);
    (void)Platform::host().remove(path);
    if (!reserved.ok()) continue;  // no pages set aside
    EXPECT_EQ(*(*file)->size(), kBytes);
    const std::string text = "what was written";
    ASSERT_TRUE((*file)->write_at(kBytes - text.size(), text.data(), text.size()).ok());
    std::string read(text.size(), ' ');
    auto got = (*file)->read_at(kBytes - text.size(), read.data(), read.size());
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(*got, text.size());
    EXPECT_EQ(read, text);
    EXPECT_EQ((*file)->write_at(kBytes, "x", 1).code(), Code::out_of_range);
    return;
  }
  GTEST_SKIP() << "no hugetlbfs with free pages is mounted";
}

}  // namespace
}  // namespace penstock
