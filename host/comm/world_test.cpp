#include "penstock/comm/world.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "penstock/base/env.h"

namespace penstock {
namespace {

// Starts without any variable that a launcher or a user may have set, and puts all back.
class WorldTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const env::Variable& variable : env::variables()) set(variable.name, nullptr);
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID",
          "MASTER_PORT", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
          "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"}) {
      set(name, nullptr);
    }
    set("PENSTOCK_POOL_BYTES", "4M");
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }
  void set(const std::string& name, const char* value) {
    if (before_.count(name) == 0) before_[name] = env::foreign(name.c_str());
    if (value != nullptr) {
      ::setenv(name.c_str(), value, 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
  void be_rank(const char* rank, const char* size, const std::string& comm) {
    set("PENSTOCK_RANK", rank);
    set("PENSTOCK_SIZE", size);
    set("PENSTOCK_COMM", comm.c_str());
  }
  Platform& platform_ = Platform::host();

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(WorldTest, AloneHasAPrivatePoolThatGoesWithIt) {
  std::string spec;
  {
    auto world = World::open(platform_);
    ASSERT_TRUE(world.ok()) << world.status().to_string();
    spec = world->pool().spec();
    EXPECT_TRUE(std::filesystem::exists(spec));
    EXPECT_EQ(std::filesystem::file_size(spec), 4u << 20);
    EXPECT_TRUE(world->temporary());
    EXPECT_EQ(find_mark(world->pool()), Mark::alive);
    auto other = World::open(platform_);
    ASSERT_TRUE(other.ok());
    EXPECT_NE(other->pool().spec(), spec);
    EXPECT_NE(other->comm_config()->name, world->comm_config()->name);
  }
  EXPECT_FALSE(std::filesystem::exists(spec));
}

TEST_F(WorldTest, ANamedPoolIsUsedAndStays) {
  const std::string spec = "/dev/shm/world-test-" + std::to_string(::getpid());
  PoolConfig config;
  config.spec = spec;
  config.bytes_per_device = 2u << 20;
  ASSERT_TRUE(Pool::create(platform_, config).ok());
  set("PENSTOCK_POOL", spec.c_str());
  {
    auto world = World::open(platform_);
    ASSERT_TRUE(world.ok()) << world.status().to_string();
    EXPECT_EQ(world->pool().spec(), spec);
    EXPECT_FALSE(world->temporary());
    EXPECT_EQ(find_mark(world->pool()), Mark::none);
  }
  EXPECT_TRUE(std::filesystem::exists(spec));
  ASSERT_TRUE(Pool::destroy(platform_, spec).ok());
  const auto gone = World::open(platform_);
  EXPECT_EQ(gone.status().code(), Code::not_found);
  EXPECT_NE(gone.status().message().find("PENSTOCK_POOL"), std::string::npos);
}

TEST_F(WorldTest, ConfigurationComesFromTheEnvironment) {
  set("PENSTOCK_ENGINE", "scalar");
  set("PENSTOCK_TIMEOUT_MS", "1234");
  set("PENSTOCK_BLOCK_BYTES", "64K");
  set("PENSTOCK_WAIT", "yield");
  be_rank("0", "1", "my-comm");
  auto world = World::open(platform_);
  ASSERT_TRUE(world.ok()) << world.status().to_string();
  const auto config = world->comm_config();
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().name, "my-comm");
  EXPECT_EQ(config.value().engine, "scalar");
  EXPECT_EQ(config.value().timeout_ms, 1234u);
  EXPECT_EQ(config.value().rank_bytes, 65536u);
  EXPECT_EQ(config.value().wait, CommConfig::Wait::yield);

  for (const auto& [name, value] : std::map<const char*, const char*>{
           {"PENSTOCK_TIMEOUT_MS", "0"}, {"PENSTOCK_BLOCK_BYTES", "1"}, {"PENSTOCK_WAIT", "x"}}) {
    const std::string good = *env::foreign(name);
    set(name, value);
    const Status status = world->comm_config().status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << name;
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    set(name, good.c_str());
  }
  set("PENSTOCK_COMM", std::string(32, 'x').c_str());
  EXPECT_EQ(world->comm_config().status().code(), Code::invalid_argument);
}

TEST_F(WorldTest, BadValuesOfThePoolAreNamed) {
  for (const auto& [name, value] :
       std::map<const char*, const char*>{{"PENSTOCK_POOL_BYTES", "1K"},
                                          {"PENSTOCK_POOL_DEVICES", "17"},
                                          {"PENSTOCK_COHERENCE", "some"},
                                          {"PENSTOCK_HOST_ID", "16"}}) {
    set(name, value);
    const auto world = World::open(platform_);
    EXPECT_EQ(world.status().code(), Code::invalid_argument) << name;
    EXPECT_NE(world.status().message().find(name), std::string::npos) << world.status().message();
    set(name, nullptr);
  }
}

// Rank 1 opens in a child, first; rank 0 comes later. Both see one pool, which is gone afterwards.
TEST_F(WorldTest, RanksShareThePoolOfTheirJob) {
  const std::string comm = "world-test-" + std::to_string(::getpid());
  be_rank("1", "2", comm);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto world = World::open(platform_);
    if (!world.ok()) ::_exit(1);
    auto found = world->pool().find(RegionKind::user, "from rank 0");
    for (int i = 0; i < 500 && !found.ok(); ++i) {
      platform_.sleep_ns(10'000'000);
      found = world->pool().find(RegionKind::user, "from rank 0");
    }
    ::_exit(found.ok() ? 0 : 2);  // without a destructor: like a process that is killed
  }
  platform_.sleep_ns(100'000'000);
  be_rank("0", "2", comm);
  std::string spec;
  {
    auto world = World::open(platform_);
    ASSERT_TRUE(world.ok()) << world.status().to_string();
    spec = world->pool().spec();
    RegionRequest request;
    request.name = "from rank 0";
    request.bytes = 64;
    EXPECT_TRUE(world->pool().allocate(request).ok());
    int state = 0;
    ASSERT_EQ(::waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFEXITED(state));
    EXPECT_EQ(WEXITSTATUS(state), 0);
  }
  EXPECT_FALSE(std::filesystem::exists(spec));
}

TEST_F(WorldTest, RankZeroThatNeverComesIsADeadline) {
  be_rank("1", "2", "world-none-" + std::to_string(::getpid()));
  set("PENSTOCK_TIMEOUT_MS", "100");
  const auto world = World::open(platform_);
  EXPECT_EQ(world.status().code(), Code::deadline_exceeded);
}

// A killed maker's pool is swept, a live one's and one that somebody made to keep are not.
TEST_F(WorldTest, SweepTakesWhatTheDeadLeft) {
  const std::string kept = default_pool_spec(Launch{.launcher = "x",
                                                    .rank = 0,
                                                    .size = 1,
                                                    .local_rank = 0,
                                                    .local_size = 1,
                                                    .job = "kept-" + std::to_string(::getpid())});
  PoolConfig config;
  config.spec = kept;
  config.bytes_per_device = 2u << 20;
  ASSERT_TRUE(Pool::create(platform_, config).ok());
  auto live = TemporaryPool::make(platform_, "", 2, 2u << 20);
  ASSERT_TRUE(live.ok()) << live.status().to_string();

  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto made = TemporaryPool::make(platform_, "", 2, 2u << 20);
    const std::string spec = made.ok() ? made->pool().spec() : "";
    (void)!::write(fds[1], spec.data(), spec.size());
    ::close(fds[1]);
    ::pause();
    ::_exit(0);
  }
  ::close(fds[1]);
  char buffer[256];
  const ssize_t got = ::read(fds[0], buffer, sizeof buffer);
  ::close(fds[0]);
  ASSERT_GT(got, 0);
  const std::string abandoned(buffer, static_cast<std::size_t>(got));
  sweep_temporary_pools(platform_);
  EXPECT_TRUE(std::filesystem::exists(abandoned + ".1"));  // its maker lives

  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  sweep_temporary_pools(platform_);
  EXPECT_FALSE(std::filesystem::exists(abandoned + ".0"));
  EXPECT_FALSE(std::filesystem::exists(abandoned + ".1"));
  EXPECT_TRUE(std::filesystem::exists(live->pool().spec() + ".1"));
  EXPECT_TRUE(std::filesystem::exists(kept));
  EXPECT_TRUE(Pool::destroy(platform_, kept).ok());
}

}  // namespace
}  // namespace penstock
