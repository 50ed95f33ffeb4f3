// Simulated files and their locks, held against what open-file-description locks do.
#include "penstock/sim/incoherent/file_system.h"

#include <gtest/gtest.h>

namespace penstock::sim {
namespace {

RangeLock range(std::uint64_t description, std::uint64_t begin, std::uint64_t end,
                bool shared = false, std::uint32_t machine = 0) {
  return {machine, description, shared, begin, end};
}

TEST(FileSystem, a_path_names_a_file_until_it_is_removed) {
  FileSystem files;
  EXPECT_EQ(files.open("a", OpenMode::read_write).status().code(), Code::not_found);
  const auto made = files.open("a", OpenMode::create_new).value();
  EXPECT_EQ(files.open("a", OpenMode::create_new).status().code(), Code::already_exists);
  EXPECT_EQ(files.open("a", OpenMode::read_write).value(), made);
  EXPECT_EQ(files.identity("a"), made->identity);
  ASSERT_TRUE(files.remove("a").ok());
  EXPECT_EQ(files.identity("a"), 0u);
  EXPECT_EQ(files.remove("a").code(), Code::not_found);
  EXPECT_NE(files.open("a", OpenMode::create_new).value()->identity, made->identity);
}

TEST(FileSystem, resizing_keeps_the_bytes_that_stay) {
  FileSystem files;
  const auto inode = files.open("a", OpenMode::create_new).value();
  ASSERT_TRUE(files.resize("a", *inode, 4096).ok());
  std::byte line[kLine];
  for (std::byte& byte : line) byte = std::byte{6};
  inode->memory->write_line(3, line);
  ASSERT_TRUE(files.resize("a", *inode, 65536).ok());
  EXPECT_EQ(inode->bytes, 65536u);
  EXPECT_EQ(inode->memory->line(3)[5], std::byte{6});
  EXPECT_EQ(inode->memory->line(100)[0], std::byte{0});
  inode->mappings = 1;
  EXPECT_EQ(files.resize("a", *inode, 4096).code(), Code::unsupported);
}

TEST(FileSystem, exclusive_locks_exclude_and_shared_ones_do_not) {
  Inode inode;
  EXPECT_TRUE(FileSystem::lock("a", inode, range(1, 10, 20)).ok());
  EXPECT_EQ(FileSystem::lock("a", inode, range(2, 19, 30)).code(), Code::busy);
  EXPECT_TRUE(FileSystem::lock("a", inode, range(2, 20, 30)).ok());
  EXPECT_TRUE(FileSystem::lock("a", inode, range(1, 12, 15)).ok()) << "one's own";
  EXPECT_EQ(FileSystem::lock("a", inode, range(3, 0, 11, true)).code(), Code::busy);
  EXPECT_TRUE(FileSystem::lock("a", inode, range(3, 40, 50, true)).ok());
  EXPECT_TRUE(FileSystem::lock("a", inode, range(4, 40, 50, true)).ok());
  EXPECT_EQ(FileSystem::lock("a", inode, range(5, 45, 46)).code(), Code::busy);
}

TEST(FileSystem, unlocking_a_part_leaves_the_rest) {
  Inode inode;
  ASSERT_TRUE(FileSystem::lock("a", inode, range(1, 10, 20)).ok());
  FileSystem::unlock(inode, range(1, 13, 15));
  EXPECT_TRUE(FileSystem::is_locked(inode, range(2, 12, 13)));
  EXPECT_FALSE(FileSystem::is_locked(inode, range(2, 13, 15)));
  EXPECT_TRUE(FileSystem::is_locked(inode, range(2, 15, 16)));
  EXPECT_FALSE(FileSystem::is_locked(inode, range(1, 0, 100))) << "one's own does not count";
  FileSystem::unlock(inode, range(2, 0, 100));
  EXPECT_TRUE(FileSystem::is_locked(inode, range(2, 10, 11))) << "another's stays";
  FileSystem::unlock_all(inode, 1);
  EXPECT_FALSE(FileSystem::is_locked(inode, range(2, 0, 100)));
}

TEST(FileSystem, locks_do_not_reach_another_machine) {
  Inode inode;
  ASSERT_TRUE(FileSystem::lock("a", inode, range(1, 10, 20)).ok());
  EXPECT_FALSE(FileSystem::is_locked(inode, range(2, 10, 20, false, 1)));
  EXPECT_TRUE(FileSystem::lock("a", inode, range(2, 10, 20, false, 1)).ok());
}

}  // namespace
}  // namespace penstock::sim
