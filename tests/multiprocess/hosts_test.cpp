// Comms over several hosts: what one host's locks and /proc tell means nothing to another's. Here
// hosts are made up on one machine: each has file locks of its own and another boot id, and lines
// are written back and invalidated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fault_calls.h"
#include "penstock/base/forwarding_platform_test.h"
#include "ranks.h"
#include "tally.h"

namespace penstock::test {
namespace {

using testing::HasSubstr;
constexpr std::uint32_t kTimeoutMs = 20'000;
constexpr std::uint32_t kSilenceMs = 4000;  // where only the deadline tells of a loss

// A file whose locks only processes of the same host see.
class HostFile final : public File {
 public:
  HostFile(std::unique_ptr<File> file, std::uint64_t host)
      : file_(std::move(file)), shift_((host + 1) << 30) {}
  const std::string& path() const override { return file_->path(); }
  Result<std::uint64_t> size() const override { return file_->size(); }
  Status reserve(std::uint64_t bytes) override { return file_->reserve(bytes); }
  Result<std::size_t> read_at(std::uint64_t at, void* data, std::size_t bytes) const override {
    return file_->read_at(at, data, bytes);
  }
  Status write_at(std::uint64_t at, const void* data, std::size_t bytes) override {
    return file_->write_at(at, data, bytes);
  }
  Result<std::byte*> map(std::uint64_t bytes) override { return file_->map(bytes); }
  Status try_lock(std::uint64_t at, std::uint64_t bytes) override {
    return file_->try_lock(at + shift_, bytes);
  }
  Status try_lock_shared(std::uint64_t at, std::uint64_t bytes) override {
    return file_->try_lock_shared(at + shift_, bytes);
  }
  Status lock(std::uint64_t at, std::uint64_t bytes, std::uint32_t timeout_ms) override {
    return file_->lock(at + shift_, bytes, timeout_ms);
  }
  Status unlock(std::uint64_t at, std::uint64_t bytes) override {
    return file_->unlock(at + shift_, bytes);
  }
  Result<bool> is_locked(std::uint64_t at, std::uint64_t bytes) const override {
    return file_->is_locked(at + shift_, bytes);
  }
  std::uint64_t identity() const override { return file_->identity(); }

 private:
  std::unique_ptr<File> file_;
  std::uint64_t shift_;  // more than what all locks of a pool span
};

class HostPlatform final : public ForwardingPlatform {
 public:
  explicit HostPlatform(std::uint32_t host) : host_(host) {}
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                     unsigned permissions) override {
    PENSTOCK_ASSIGN(std::unique_ptr<File> file, to_.open(path, mode, permissions));
    return std::unique_ptr<File>(std::make_unique<HostFile>(std::move(file), host_));
  }
  ProcessIdentity self() override {
    ProcessIdentity own = to_.self();
    own.boot_id[0] ^= static_cast<std::uint8_t>(host_ + 1);
    return own;
  }
  Liveness liveness(const ProcessIdentity& process) override { return to_.liveness(real(process)); }
  char process_state(const ProcessIdentity& process) override {
    return to_.process_state(real(process));
  }

 private:
  // Of this host; what is of another stays of another.
  ProcessIdentity real(ProcessIdentity process) const {
    process.boot_id[0] ^= static_cast<std::uint8_t>(host_ + 1);
    return process;
  }
  std::uint32_t host_;
};

class HostsPool {
 public:
  explicit HostsPool(std::uint32_t hosts) {
    static int serial = 0;
    spec_ = fmt::format("/dev/shm/penstock-test-hosts-{}-{}", ::getpid(), serial++);
    PoolConfig config;
    config.spec = spec_;
    config.devices = 2;
    config.bytes_per_device = 32u << 20;
    config.hosts = hosts;
    const Status status = Pool::create(Platform::host(), config);
    PENSTOCK_CHECK(status.ok(), "{}", status.to_string());
  }
  ~HostsPool() { (void)Pool::destroy(Platform::host(), spec_, true); }
  const std::string& spec() const { return spec_; }

 private:
  std::string spec_;
};

// A rank of host `rank % hosts`.
struct HostMember {
  std::unique_ptr<HostPlatform> platform;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Comm> comm;
};
Result<HostMember> join_on(const std::string& spec, std::uint32_t host, std::uint32_t rank,
                           std::uint32_t size, std::uint32_t timeout_ms = kTimeoutMs) {
  HostMember member;
  member.platform = std::make_unique<HostPlatform>(host);
  MapOptions options;
  options.coherence = Coherence::software;
  options.host_id = host;
  PENSTOCK_ASSIGN(member.pool, Pool::map(*member.platform, spec, options));
  CommConfig config;
  config.name = "test";
  config.rank = rank;
  config.size = size;
  config.timeout_ms = timeout_ms;
  config.rank_bytes = 65536;
  PENSTOCK_ASSIGN(member.comm, Comm::join(*member.pool, config));
  return member;
}

std::string sum(Comm& comm, int turn = 0) {
  std::string wrong;
  const Status status = call_and_check(comm, Collective::all_reduce, 5000, turn, true, &wrong);
  return status.ok() ? wrong : status.to_string();
}

Status run_until_it_fails(Comm& comm) {
  for (;;) {
    std::string wrong;
    PENSTOCK_TRY(call_and_check(comm, Collective::all_gather, 100, 0, true, &wrong));
    if (!wrong.empty()) return error(Code::internal, "{}", wrong);
  }
}

std::string regions_of(const std::string& spec) {
  auto pool = Pool::map(Platform::host(), spec);
  PENSTOCK_CHECK(pool.ok(), "{}", pool.status().to_string());
  std::string names;
  for (const RegionInfo& region : (*pool)->regions()) names += region.name + " ";
  return names;
}

TEST(Hosts, MeetAndLeaveAgainAndAgain) {
  const HostsPool pool(3);
  EXPECT_EQ("", run_ranks(5, [&](std::uint32_t rank) -> std::string {
              for (int turn = 0; turn < 8; ++turn) {
                auto member = join_on(pool.spec(), rank % 3, rank, 5);
                if (!member.ok()) return fmt::format("{}: {}", turn, member.status().to_string());
                const std::string wrong = sum(*member->comm, turn);
                if (!wrong.empty()) return fmt::format("turn {}: {}", turn, wrong);
              }
              return "";
            }));
  EXPECT_EQ("", regions_of(pool.spec()));
}

TEST(Hosts, SplitAndGrowReachOverThem) {
  const HostsPool pool(2);
  EXPECT_EQ("", run_ranks(4, [&](std::uint32_t rank) -> std::string {
              auto member = join_on(pool.spec(), rank % 2, rank, 4);
              if (!member.ok()) return member.status().to_string();
              auto part = member->comm->split(static_cast<std::int32_t>(rank / 2), 0);
              if (!part.ok()) return part.status().to_string();
              std::string wrong = sum(**part);
              if (!wrong.empty()) return "part: " + wrong;
              auto same = member->comm->grow(4);
              if (!same.ok()) return same.status().to_string();
              wrong = sum(**same);
              return wrong.empty() ? sum(*member->comm, 1) : "grown: " + wrong;
            }));
  EXPECT_EQ("", regions_of(pool.spec()));
}

class Loss : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Hosts, Loss, testing::Values(0u, 1u, 4u),
                         [](const auto& param) { return fmt::format("of_rank_{}", param.param); });

// Ranks 0 and 2 are of host 0, 1 and 3 of host 1, 4 alone of host 2. A death is proven by a rank of
// the same host; where there is none, the deadline counts. Rank 0's host makes the regions.
TEST_P(Loss, IsNamedOnAllHostsAndTheSurvivorsGoOn) {
  const std::uint32_t victim = GetParam();
  const HostsPool pool(3);
  const auto host_of = [](std::uint32_t rank) { return rank == 4 ? 2u : rank % 2; };
  const Tally met;
  Ranks ranks(5, [&](std::uint32_t rank) -> std::string {
    if (rank > 0) ::usleep(50'000);
    auto member =
        join_on(pool.spec(), host_of(rank), rank, 5, victim == 4 ? kSilenceMs : kTimeoutMs);
    if (!member.ok()) return member.status().to_string();
    met.add();
    const Status failed = run_until_it_fails(*member->comm);
    if (failed.message().find(fmt::format("rank {}", victim)) == std::string::npos) {
      return "does not name the culprit: " + failed.to_string();
    }
    auto smaller = member->comm->shrink();
    if (!smaller.ok()) return "shrink: " + smaller.status().to_string();
    if ((*smaller)->size() != 4) return fmt::format("{} ranks", (*smaller)->size());
    return sum(**smaller);
  });
  ASSERT_TRUE(met.await(5));
  ::usleep(100'000);
  ::kill(ranks.pid(victim), SIGKILL);
  const auto ends = ranks.join();
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ("", ends[rank].message) << "rank " << rank;
  }
  // The next run, with a rank of each host, starts clean.
  EXPECT_EQ("", run_ranks(3, [&](std::uint32_t rank) -> std::string {
              auto member = join_on(pool.spec(), rank, rank, 3);
              return member.ok() ? sum(*member->comm) : member.status().to_string();
            }));
  EXPECT_EQ("", regions_of(pool.spec()));
}

TEST(Hosts, AStoppedRankIsVotedOut) {
  const HostsPool pool(2);
  const Tally met;
  const Tally went_on;
  Ranks ranks(3, [&](std::uint32_t rank) -> std::string {
    auto member = join_on(pool.spec(), rank % 2, rank, 3, kSilenceMs);
    if (!member.ok()) return member.status().to_string();
    met.add();
    const Status failed = run_until_it_fails(*member->comm);
    auto smaller = member->comm->shrink();
    if (rank == 1) return smaller.ok() ? "not refused" : smaller.status().to_string();
    if (!smaller.ok()) return failed.to_string() + "; " + smaller.status().to_string();
    if ((*smaller)->size() != 2) return fmt::format("{} ranks", (*smaller)->size());
    if (failed.message().find("rank 1") == std::string::npos) return failed.to_string();
    const std::string wrong = sum(**smaller);
    went_on.add();
    return wrong;
  });
  ASSERT_TRUE(met.await(3));
  ::usleep(100'000);
  ::kill(ranks.pid(1), SIGSTOP);
  EXPECT_TRUE(went_on.await(2));
  ::kill(ranks.pid(1), SIGCONT);
  const auto ends = ranks.join();
  EXPECT_EQ("", ends[0].message);
  EXPECT_EQ("", ends[2].message);
  EXPECT_THAT(ends[1].message, HasSubstr("went on without rank 1"));
}

}  // namespace
}  // namespace penstock::test
