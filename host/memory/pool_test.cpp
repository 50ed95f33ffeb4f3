// Making, mapping and removing pools; translation.
#include "penstock/memory/pool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "penstock/base/forwarding_platform_test.h"
#include "penstock/memory/superblock.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void patch_file(const std::string& path, std::streamoff at, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(at);
  file << bytes;
}

TEST_F(PoolTest, one_device_keeps_its_path) {
  create(3 * kMiB);
  struct stat info;
  ASSERT_EQ(::stat(spec_.c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 4 << 20) << "rounded up to 2 MiB";
  EXPECT_GE(info.st_blocks * 512, 4 << 20) << "every page is reserved";
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  auto pool = map();
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->spec(), spec_);
  EXPECT_EQ(pool->device_count(), 1u);
  EXPECT_TRUE(pool->still_named());
  EXPECT_TRUE(pool->check().empty());
  const auto devices = pool->devices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].path, spec_);
  EXPECT_EQ(devices[0].bytes, 4 * kMiB);
  EXPECT_EQ(devices[0].used, 0u);
  EXPECT_GT(devices[0].free, 3 * kMiB + 900 * 1024);
  pool.reset();
  EXPECT_EQ(Pool::destroy(platform_, spec_).to_string(), "ok");
  EXPECT_NE(::stat(spec_.c_str(), &info), 0);
}

TEST_F(PoolTest, several_devices_have_numbered_paths_and_need_no_count_later) {
  create(2 * kMiB, 3);
  auto pool = map();
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->device_count(), 3u);
  EXPECT_EQ(pool->devices()[2].path, spec_ + ".2");
  pool.reset();
  EXPECT_EQ(Pool::destroy(platform_, spec_).to_string(), "ok");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(platform_.exists(spec_ + "." + std::to_string(i)));
}

TEST_F(PoolTest, a_list_of_paths) {
  PoolConfig list = config(2 * kMiB);
  list.spec = spec_ + "-b," + spec_ + "-a";
  ASSERT_EQ(Pool::create(platform_, list).to_string(), "ok");
  EXPECT_EQ(Pool::map(platform_, list.spec).status().to_string(), "ok");
  const Status swapped = Pool::map(platform_, spec_ + "-a," + spec_ + "-b").status();
  EXPECT_EQ(swapped.code(), Code::corrupt);
  EXPECT_THAT(swapped.message(), HasSubstr("is device 1 of its pool"));
  const Status alone = Pool::map(platform_, spec_ + "-b").status();
  EXPECT_EQ(alone.code(), Code::corrupt);
  EXPECT_THAT(alone.message(), HasSubstr("2 devices, but the spec names 1"));
  EXPECT_EQ(Pool::destroy(platform_, list.spec).to_string(), "ok");
}

TEST_F(PoolTest, create_refuses_what_makes_no_sense) {
  const auto code = [&](auto change) {
    PoolConfig changed = config();
    change(changed);
    return Pool::create(platform_, changed).code();
  };
  EXPECT_EQ(code([](auto& c) { c.bytes_per_device = kMinDeviceBytes - 1; }),
            Code::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.bytes_per_device = UINT64_MAX; }), Code::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.hosts = 0; }), Code::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.hosts = 17; }), Code::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.devices = 0; }), Code::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.devices = 17; }), Code::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.spec = ""; }), Code::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.spec = "/dev/shm/a,"; }), Code::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.spec = "/dev/shm/a,/dev/shm/a"; }), Code::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.spec = "/dev/shm/none/pool"; }), Code::not_found);
  EXPECT_EQ(code([](auto& c) { c.spec = "/dev/shm"; }), Code::invalid_argument);
  EXPECT_FALSE(platform_.exists(spec_));
}

TEST_F(PoolTest, create_leaves_existing_files_alone) {
  create();
  const Status again = Pool::create(platform_, config());
  EXPECT_EQ(again.code(), Code::already_exists);
  EXPECT_THAT(again.message(), HasSubstr(spec_ + " exists and is a pool"));
  EXPECT_NE(map(), nullptr);
  ASSERT_TRUE(Pool::destroy(platform_, spec_).ok());

  write_file(spec_, "a letter");
  EXPECT_EQ(Pool::create(platform_, config()).code(), Code::already_exists);
  EXPECT_EQ(read_file(spec_), "a letter");
  EXPECT_EQ(Pool::destroy(platform_, spec_, true).code(), Code::corrupt);
  EXPECT_EQ(read_file(spec_), "a letter");

  write_file(spec_, "");
  EXPECT_EQ(Pool::map(platform_, spec_).status().code(), Code::not_found);
  EXPECT_EQ(Pool::create(platform_, config()).to_string(), "ok") << "an empty file is taken";
}

TEST_F(PoolTest, create_leaves_nothing_behind_when_a_later_device_fails) {
  write_file(spec_ + ".2", "a letter");
  EXPECT_EQ(Pool::create(platform_, config(2 * kMiB, 4)).code(), Code::already_exists);
  for (const char* index : {".0", ".1", ".3"}) EXPECT_FALSE(platform_.exists(spec_ + index));
  EXPECT_EQ(read_file(spec_ + ".2"), "a letter");
  ::unlink((spec_ + ".2").c_str());

  write_file(spec_, "");
  EXPECT_EQ(Pool::create(platform_, config(std::uint64_t{1} << 45)).code(), Code::no_space);
  EXPECT_TRUE(platform_.exists(spec_)) << "it was there before";
  EXPECT_EQ(read_file(spec_), "");
}

TEST_F(PoolTest, no_space_names_need_and_limit) {
  const Status status = Pool::create(platform_, config(std::uint64_t{1} << 45));
  EXPECT_EQ(status.code(), Code::no_space);
  EXPECT_THAT(status.message(), HasSubstr("needs 35184372"));
  EXPECT_THAT(status.message(), HasSubstr("--shm-size"));
  EXPECT_FALSE(platform_.exists(spec_));
}

TEST_F(PoolTest, a_small_tmpfs_gives_no_space_and_never_a_bus_error) {
  char folder[] = "/tmp/penstock-small-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  if (::mount("tmpfs", folder, "tmpfs", 0, "size=5m") != 0) {
    ::rmdir(folder);
    GTEST_SKIP() << "mounting a tmpfs needs more rights: " << std::strerror(errno);
  }
  PoolConfig small = config(4 * kMiB, 2);
  small.spec = std::string(folder) + "/pool";
  const Status status = Pool::create(platform_, small);
  EXPECT_EQ(status.code(), Code::no_space);
  EXPECT_THAT(status.message(), HasSubstr("of 5242880 bytes"));
  EXPECT_FALSE(platform_.exists(small.spec + ".0"));
  EXPECT_FALSE(platform_.exists(small.spec + ".1"));
  small.devices = 1;
  ASSERT_EQ(Pool::create(platform_, small).to_string(), "ok");
  {
    auto pool = Pool::map(platform_, small.spec).value();
    const auto region = pool->allocate(request(pool->devices()[0].free)).value();
    std::memset(pool->resolve(region.address, region.bytes), 1, region.bytes);
  }
  // A copy with holes, for which the file system has no room.
  ASSERT_EQ(::truncate(small.spec.c_str(), 4096), 0);
  ASSERT_EQ(::truncate(small.spec.c_str(), 4 << 20), 0);
  write_file(std::string(folder) + "/filler", std::string(3 << 20, 'x'));
  EXPECT_EQ(Pool::map(platform_, small.spec).status().code(), Code::no_space);
  EXPECT_EQ(::umount(folder), 0);
  ::rmdir(folder);
}

// A Platform on which a maker dies at the n-th write: every later call on the file fails.
class DyingPlatform final : public ForwardingPlatform {
 public:
  explicit DyingPlatform(int writes) : writes_left_(writes) {}
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                     unsigned permissions) override {
    auto file = to_.open(path, mode, permissions);
    if (!file.ok()) return file;
    return std::unique_ptr<File>(new DyingFile(std::move(file).value(), &writes_left_));
  }
  Status remove(const std::string& path) override {
    return writes_left_ < 0 ? error(Code::io_error, "dead") : to_.remove(path);
  }

 private:
  class DyingFile final : public File {
   public:
    DyingFile(std::unique_ptr<File> to, int* left) : to_(std::move(to)), left_(left) {}
    const std::string& path() const override { return to_->path(); }
    Result<std::uint64_t> size() const override { return to_->size(); }
    Status reserve(std::uint64_t bytes) override {
      return dead() ? error(Code::io_error, "dead") : to_->reserve(bytes);
    }
    Result<std::size_t> read_at(std::uint64_t offset, void* data,
                                std::size_t bytes) const override {
      return to_->read_at(offset, data, bytes);
    }
    Status write_at(std::uint64_t offset, const void* data, std::size_t bytes) override {
      return dead() ? error(Code::io_error, "dead") : to_->write_at(offset, data, bytes);
    }
    Result<std::byte*> map(std::uint64_t bytes) override { return to_->map(bytes); }
    Status try_lock(std::uint64_t at, std::uint64_t bytes) override {
      return to_->try_lock(at, bytes);
    }
    Status try_lock_shared(std::uint64_t at, std::uint64_t bytes) override {
      return to_->try_lock_shared(at, bytes);
    }
    Status lock(std::uint64_t at, std::uint64_t bytes, std::uint32_t timeout_ms) override {
      return to_->lock(at, bytes, timeout_ms);
    }
    Status unlock(std::uint64_t at, std::uint64_t bytes) override { return to_->unlock(at, bytes); }
    Result<bool> is_locked(std::uint64_t at, std::uint64_t bytes) const override {
      return to_->is_locked(at, bytes);
    }
    std::uint64_t identity() const override { return to_->identity(); }

   private:
    bool dead() { return --*left_ < 0; }
    std::unique_ptr<File> to_;
    int* left_;
  };
  int writes_left_;
};

TEST_F(PoolTest, what_a_dead_maker_left_is_never_mapped_and_is_taken_over) {
  int deaths = 0;
  for (int writes = 0;; ++writes) {
    DyingPlatform dying(writes);
    const Status made = Pool::create(dying, config(2 * kMiB, 2));
    if (made.ok()) break;
    ++deaths;
    MapOptions impatient;
    impatient.lock_timeout_ms = 0;
    const Code code = Pool::map(platform_, spec_, impatient).status().code();
    EXPECT_TRUE(code == Code::corrupt || code == Code::not_found) << code_name(code);
    ASSERT_EQ(Pool::create(platform_, config(4 * kMiB, 2)).to_string(), "ok") << writes;
    auto pool = map();
    ASSERT_NE(pool, nullptr);
    EXPECT_TRUE(pool->check().empty());
    EXPECT_EQ(pool->devices()[1].bytes, 4 * kMiB);
    pool.reset();
    ASSERT_EQ(Pool::destroy(platform_, spec_).to_string(), "ok");
  }
  EXPECT_GE(deaths, 8);
}

TEST_F(PoolTest, a_pool_in_the_making_is_waited_for) {
  create();
  const std::string superblock = read_file(spec_).substr(0, 8);
  patch_file(spec_, 0, "PSMAKING");
  auto maker = platform_.open(spec_, OpenMode::read_write).value();
  ASSERT_TRUE(maker->try_lock(kMakingLock, 1).ok());
  MapOptions options;
  options.lock_timeout_ms = 20;
  EXPECT_EQ(Pool::map(platform_, spec_, options).status().code(), Code::busy);
  const Status second = Pool::create(platform_, config());
  EXPECT_EQ(second.code(), Code::already_exists);
  EXPECT_THAT(second.message(), HasSubstr("is being made by another process"));
  patch_file(spec_, 0, superblock);
  maker.reset();
  EXPECT_NE(map(), nullptr);
}

TEST_F(PoolTest, map_names_what_is_wrong) {
  const Status none = Pool::map(platform_, spec_).status();
  EXPECT_EQ(none.code(), Code::not_found);
  EXPECT_THAT(none.message(), HasSubstr(spec_));
  EXPECT_EQ(Pool::map(platform_, "").status().code(), Code::invalid_argument);
  EXPECT_EQ(Pool::map(platform_, "/dev/null").status().code(), Code::invalid_argument);
  EXPECT_EQ(Pool::map(platform_, "/dev/shm").status().code(), Code::invalid_argument);

  create(2 * kMiB, 2);
  MapOptions third;
  third.host_id = 1;
  const Status host = Pool::map(platform_, spec_, third).status();
  EXPECT_EQ(host.code(), Code::invalid_argument);
  EXPECT_THAT(host.message(), HasSubstr("was made for 1 hosts: host id 1 must be 0..0"));

  patch_file(spec_ + ".1", 8, "\x09");
  const Status version = Pool::map(platform_, spec_).status();
  EXPECT_EQ(version.code(), Code::unsupported);
  EXPECT_THAT(version.message(), HasSubstr(spec_ + ".1 is a pool of format version 9"));
  patch_file(spec_ + ".1", 8, "\x02");
  EXPECT_NE(map(), nullptr);

  ASSERT_EQ(::truncate((spec_ + ".1").c_str(), 1 << 20), 0);
  const Status shorter = Pool::map(platform_, spec_).status();
  EXPECT_EQ(shorter.code(), Code::corrupt);
  EXPECT_THAT(shorter.message(), HasSubstr("names 2097152 bytes, but only 1048576 are there"));
  ::unlink((spec_ + ".1").c_str());
  EXPECT_EQ(Pool::map(platform_, spec_).status().code(), Code::not_found);
}

TEST_F(PoolTest, map_survives_any_bytes) {
  std::mt19937 random(7);
  create(2 * kMiB);
  const std::string good = read_file(spec_).substr(0, 128 << 10);
  int mapped = 0;
  for (int turn = 0; turn < 300; ++turn) {
    std::string bytes = good;
    const unsigned changes = random() % 64;
    // Half of the turns keep the superblock, so that the tables behind it are reached.
    const std::size_t from = turn % 2 == 0 ? 0 : 4096;
    for (unsigned i = 0; i < changes; ++i) {
      bytes[from + random() % (bytes.size() - from)] = static_cast<char>(random());
    }
    patch_file(spec_, 0, bytes);
    auto pool = Pool::map(platform_, spec_);
    if (!pool.ok()) {
      EXPECT_FALSE(pool.status().message().empty());
      continue;
    }
    ++mapped;
    (void)(*pool)->check();
    (void)(*pool)->regions();
    auto region = (*pool)->allocate(request(4096));
    EXPECT_EQ(region.status().to_string(), "ok");
    EXPECT_TRUE((*pool)->free(*region).ok());
  }
  EXPECT_GE(mapped, 150);
  patch_file(spec_, 0, good);
}

TEST_F(PoolTest, translation_stays_within_the_data_of_a_device) {
  create(2 * kMiB, 2);
  auto pool = map();
  const auto region = pool->allocate(request(4096, "", 1)).value();
  EXPECT_EQ(penstock_address_space(region.address), 1u);
  std::byte* memory = pool->resolve(region.address, region.bytes);
  ASSERT_NE(memory, nullptr);
  penstock_address back = 0;
  ASSERT_TRUE(pool->address_of(memory + 100, 10, &back));
  EXPECT_EQ(back, region.address + 100);

  const penstock_address end = penstock_address_make(1, 2 * kMiB);
  EXPECT_NE(pool->resolve(end - 64, 64), nullptr);
  EXPECT_NE(pool->resolve(end, 0), nullptr);
  EXPECT_EQ(pool->resolve(end - 64, 65), nullptr);
  EXPECT_EQ(pool->resolve(end + 1, 0), nullptr);
  EXPECT_EQ(pool->resolve(end - 64, UINT64_MAX), nullptr);
  EXPECT_EQ(pool->resolve(penstock_address_make(0, 0), 8), nullptr) << "the superblock";
  EXPECT_EQ(pool->resolve(penstock_address_make(1, 4095), 8), nullptr);
  EXPECT_EQ(pool->resolve(penstock_address_make(2, 1 << 20), 8), nullptr);
  EXPECT_EQ(pool->resolve(penstock_address_host(memory), 8), nullptr);
  int local = 0;
  EXPECT_FALSE(pool->address_of(&local, sizeof local, &back));
  EXPECT_FALSE(pool->address_of(memory, 2 * kMiB, &back));
}

TEST_F(PoolTest, memory_of_another_mapping_of_the_pool_is_found) {
  create(2 * kMiB, 2);
  auto pool = map();
  auto other = map();
  const auto region = other->allocate(request(4096, "", 1)).value();
  std::byte* memory = other->resolve(region.address, region.bytes);
  ASSERT_NE(memory, pool->resolve(region.address, region.bytes));
  penstock_address found = 0;
  ASSERT_TRUE(pool->address_of(memory + 64, 128, &found));
  EXPECT_EQ(found, region.address + 64);
  other.reset();
  EXPECT_FALSE(pool->address_of(memory + 64, 128, &found)) << "it is no longer mapped";
}

TEST_F(PoolTest, removal_while_mapped) {
  create();
  auto pool = map();
  const Status busy = Pool::destroy(platform_, spec_);
  EXPECT_EQ(busy.code(), Code::busy);
  EXPECT_THAT(busy.message(), HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_EQ(Pool::destroy(platform_, spec_, true).to_string(), "ok");
  EXPECT_FALSE(pool->still_named());
  create();
  EXPECT_FALSE(pool->still_named()) << "another file of the same name";
  EXPECT_NE(pool->check().size(), 0u);
  EXPECT_TRUE(pool->allocate(request(4096)).ok()) << "the mapping itself lives on";
}

TEST_F(PoolTest, forced_removal_of_a_damaged_pool) {
  create(2 * kMiB, 2);
  patch_file(spec_ + ".0", 40, "\x01");
  EXPECT_EQ(Pool::destroy(platform_, spec_).code(), Code::corrupt);
  EXPECT_EQ(Pool::destroy(platform_, spec_, true).to_string(), "ok");
  EXPECT_FALSE(platform_.exists(spec_ + ".0"));
  EXPECT_FALSE(platform_.exists(spec_ + ".1"));
  EXPECT_EQ(Pool::destroy(platform_, spec_, true).code(), Code::not_found);
}

TEST(Coherence, names) {
  EXPECT_EQ(parse_coherence("hardware").value(), Coherence::hardware);
  EXPECT_EQ(parse_coherence("software").value(), Coherence::software);
  EXPECT_EQ(parse_coherence("Software").status().code(), Code::invalid_argument);
  EXPECT_STREQ(coherence_name(Coherence::software), "software");
}

// The first address that resolves, and as many bytes from there as do.
TEST_F(PoolTest, DeviceDataIsWhatResolves) {
  create(4 * kMiB, 2);
  const auto pool = map();
  for (std::uint32_t device = 0; device < 2; ++device) {
    const DeviceData data = pool->device_data(device);
    EXPECT_EQ(penstock_address_space(data.address), device);
    EXPECT_EQ(data.address % 4096, 0u);
    ASSERT_NE(pool->resolve(data.address, data.bytes), nullptr);
    EXPECT_EQ(pool->resolve(data.address - 1, 1), nullptr);
    EXPECT_EQ(pool->resolve(data.address, data.bytes + 1), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool->resolve(data.address, 1)) % 4096, 0u);
  }
  EXPECT_EQ(pool->device_data(2).bytes, 0u);
}

}  // namespace
}  // namespace penstock
