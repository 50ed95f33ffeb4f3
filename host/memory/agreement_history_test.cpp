// Whole calls of several hosts at once: histories, roles and membership, under a schedule and a
// clock that the test makes from a seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "penstock/memory/agreement_members.h"
#include "penstock/memory/agreement_oracle_test.h"
#include "penstock/memory/agreement_role.h"
#include "penstock/memory/line_pool_test.h"
#include "penstock/memory/stepped_threads_test.h"

namespace penstock {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// A host whose clock has a rate and an offset of its own.
class ClockedHost final : public IncoherentHost {
 public:
  using IncoherentHost::IncoherentHost;
  std::uint64_t now_ns() override {
    return offset_ns + static_cast<std::uint64_t>(static_cast<double>(*world_ns) * rate);
  }
  void sleep_ns(std::uint64_t ns) override {
    const std::uint64_t until_ns = now_ns() + ns;
    while (now_ns() < until_ns) {
      asleep_until_ns =
          *world_ns + static_cast<std::uint64_t>(static_cast<double>(until_ns - now_ns()) / rate) +
          1;
      if (on_access) {
        on_access();
      } else {
        *world_ns = asleep_until_ns;
      }
    }
    asleep_until_ns = 0;
  }
  const std::uint64_t* clock() const { return world_ns; }

  std::uint64_t* world_ns = nullptr;
  std::uint64_t offset_ns = 0;
  double rate = 1;
  std::uint64_t asleep_until_ns = 0;  // of the world's clock
};

// Hosts that run as stepped threads over one memory.
class World {
 public:
  World(std::uint32_t hosts, std::uint64_t seed)
      : random(seed), memory_(lines(hosts)), threads_(hosts) {
    for (std::uint32_t who = 0; who < hosts; ++who) {
      hosts_.push_back(std::make_unique<ClockedHost>(memory_, seed * 16 + who));
      ClockedHost& host = *hosts_[who];
      host.world_ns = &now_ns;
      host.offset_ns = random() % (1000 * kMs);
      host.rate = 0.9 + 0.2 * static_cast<double>(random() % 1000) / 1000;
      host.evictions_of_256 = 16;
      pools_.push_back(std::make_unique<LinePool>(host, who, hosts, memory_.size()));
    }
  }
  ~World() {
    for (std::uint32_t who = 0; who < hosts_.size(); ++who) kill(who);
  }

  ClockedHost& host(std::uint32_t who) { return *hosts_[who]; }
  LinePool& pool(std::uint32_t who) { return *pools_[who]; }
  bool is_running(std::uint32_t who) const { return threads_.is_running(who); }

  void start(std::uint32_t who, std::function<void()> body) {
    hosts_[who]->on_access = [this, who] {
      now_ns += random() % 2000;
      // Now and then a host is stopped in the middle of whatever it does.
      if (random() % 1500 == 0) hosts_[who]->asleep_until_ns = now_ns + random() % (20 * kMs);
      if (accesses_left_ > 0 && hosts_[who]->asleep_until_ns <= now_ns) {
        --accesses_left_;
      } else {
        threads_.point(who);
      }
    };
    threads_.start(who, std::move(body));
  }
  void kill(std::uint32_t who) {
    threads_.stop(who);
    hosts_[who]->on_access = nullptr;
    hosts_[who]->asleep_until_ns = 0;
  }
  // A few accesses of one host that runs and is awake; the time goes on. False when none runs.
  bool step() {
    std::vector<std::uint32_t> awake;
    std::uint64_t next_ns = UINT64_MAX;
    for (std::uint32_t who = 0; who < hosts_.size(); ++who) {
      if (!threads_.is_running(who)) continue;
      if (hosts_[who]->asleep_until_ns <= now_ns) {
        awake.push_back(who);
      } else {
        next_ns = std::min(next_ns, hosts_[who]->asleep_until_ns);
      }
    }
    if (awake.empty() && next_ns == UINT64_MAX) return false;
    if (awake.empty()) {
      now_ns = next_ns;
      return true;
    }
    // Handing the turn on costs much more than an access, so that single ones are not the rule.
    accesses_left_ = random() % 4 == 0 ? 0 : random() % 16;
    const std::uint32_t who = awake[random() % awake.size()];
    if (!threads_.step(who)) hosts_[who]->on_access = nullptr;
    return true;
  }

  std::mt19937_64 random;
  std::uint64_t now_ns = 1;

 private:
  static std::size_t lines(std::uint32_t hosts) {
    return (pool_agreement_bytes(hosts) + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  std::uint64_t accesses_left_ = 0;
  LineBuffer memory_;
  std::vector<std::unique_ptr<ClockedHost>> hosts_;
  std::vector<std::unique_ptr<LinePool>> pools_;
  SteppedThreads threads_;
};

struct Note {
  std::uint32_t author;
  std::uint32_t count;
};

// Hosts that move one history on, fail and come back. Per number one value is decided, what a host
// has seen never goes back, and in the end all know the same.
TEST(AgreementHistory, moves_on_and_never_forks) {
  std::uint64_t decisions = 0;
  std::uint64_t kills = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto hosts = static_cast<std::uint32_t>(2 + seed % 3);
    AgreementOracle oracle;
    World world(hosts, seed);
    std::uint32_t count = 0;
    std::uint64_t newest_recorded = 0;
    const auto body = [&](std::uint32_t who) {
      Agreement agreement = Agreement::open(world.pool(who), 1).value();
      std::uint64_t seen = 0;
      for (int turn = 0; turn < 4; ++turn) {
        const std::uint64_t recorded = newest_recorded;
        auto latest = agreement.latest(UINT64_MAX);
        ASSERT_EQ(latest.status().to_string(), "ok") << "seed " << seed;
        ASSERT_GE(latest->number, recorded) << "seed " << seed;
        const auto next = [&](const Decision& newest) {
          EXPECT_GE(newest.number, seen) << "seed " << seed;
          if (newest.number > 0) oracle.decide(newest.number, newest.value);
          seen = newest.number;
          const AgreementValue value = to_agreement_value(Note{who, ++count});
          oracle.propose(newest.number + 1, value);
          return std::optional<AgreementValue>(value);
        };
        const auto decision = agreement.update(next, UINT64_MAX);
        ASSERT_EQ(decision.status().to_string(), "ok") << "seed " << seed;
        oracle.decide(decision.value().number, decision.value().value);
        newest_recorded = std::max(newest_recorded, decision.value().number);
        ++decisions;
      }
    };
    for (std::uint32_t who = 0; who < hosts; ++who) world.start(who, [&body, who] { body(who); });
    std::uint32_t budget = 6;
    while (world.step()) {
      if (budget == 0 || world.random() % 40 != 0) continue;
      const auto who = static_cast<std::uint32_t>(world.random() % hosts);
      if (!world.is_running(who)) continue;
      --budget;
      ++kills;
      world.kill(who);
      if (world.random() % 2 == 0) world.host(who).drop_cache();
      world.start(who, [&body, who] { body(who); });
    }
    ASSERT_EQ(oracle.violation(), "") << "seed " << seed;
    std::optional<std::uint64_t> newest;
    for (std::uint32_t who = 0; who < hosts; ++who) {
      auto latest = Agreement::open(world.pool(who), 1)->latest(UINT64_MAX);
      ASSERT_EQ(latest.status().to_string(), "ok");
      oracle.decide(latest->number, latest->value);
      if (!newest) newest = latest->number;
      EXPECT_EQ(latest->number, *newest) << "seed " << seed;
    }
    ASSERT_EQ(oracle.violation(), "") << "seed " << seed;
    EXPECT_GE(*newest, 4u * hosts);
  }
  EXPECT_GE(decisions, 40u * 2 * 4);
  EXPECT_GT(kills, 40u);
}

// Whoever believes to hold a role is the only one that does, at any moment of the world's time,
// although clocks run apart, holders sleep, and holders die. Epochs only grow.
TEST(AgreementRole, has_one_holder_at_a_time) {
  constexpr std::uint32_t kHosts = 3;
  std::uint64_t takeovers = 0;
  std::uint64_t renewals = 0;
  std::uint64_t losses = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    World world(kHosts, seed + 1000);
    std::array<RoleLease*, kHosts> leases{};
    std::set<std::uint64_t> epochs;
    const auto check_alone = [&](std::uint32_t who) {
      for (std::uint32_t other = 0; other < kHosts; ++other) {
        if (other == who || leases[other] == nullptr || !leases[who]->is_valid()) continue;
        ASSERT_FALSE(leases[other]->is_valid())
            << "seed " << seed << ": hosts " << who << " and " << other << " both hold the role";
      }
    };
    const auto body = [&](std::uint32_t who) {
      std::uint64_t own_epoch = 0;
      for (int turn = 0; turn < 3; ++turn) {
        const std::uint64_t deadline_ns = world.host(who).now_ns() + 10'000 * kMs;
        auto lease = RoleLease::acquire(world.pool(who), 0, 10, deadline_ns);
        ASSERT_EQ(lease.status().to_string(), "ok") << "seed " << seed;
        ASSERT_TRUE(epochs.insert(lease->epoch()).second) << "seed " << seed;
        ASSERT_GT(lease->epoch(), own_epoch) << "seed " << seed;
        own_epoch = lease->epoch();
        leases[who] = &*lease;
        check_alone(who);
        ++takeovers;
        for (std::uint64_t left = world.random() % 4; left > 0; --left) {
          world.host(who).sleep_ns(world.random() % (world.random() % 4 == 0 ? 40 : 8) * kMs);
          check_alone(who);
          const Status renewed = lease->renew(UINT64_MAX);
          check_alone(who);
          if (!renewed.ok()) {
            ASSERT_EQ(renewed.code(), Code::revoked) << renewed.to_string();
            ++losses;
            break;
          }
          ++renewals;
        }
        // Some give it up, some forget to.
        if (world.random() % 2 == 0) {
          ASSERT_TRUE(lease->release(UINT64_MAX).ok());
        }
        leases[who] = nullptr;
      }
    };
    const auto begin = [&](std::uint32_t who) { world.start(who, [&body, who] { body(who); }); };
    for (std::uint32_t who = 0; who < kHosts; ++who) begin(who);
    std::uint32_t budget = 3;
    while (world.step()) {
      if (budget == 0 || world.random() % 50 != 0) continue;
      const auto who = static_cast<std::uint32_t>(world.random() % kHosts);
      if (!world.is_running(who)) continue;
      --budget;
      leases[who] = nullptr;
      world.kill(who);
      begin(who);
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(takeovers, 100u);
  EXPECT_GT(renewals, 50u);
  EXPECT_GT(losses, 10u);
}

class RoleTest : public ::testing::Test {
 protected:
  RoleTest() : world_(2, 5) {}
  World world_;
};

TEST_F(RoleTest, a_late_holder_finds_its_epoch_gone) {
  auto first = RoleLease::acquire(world_.pool(0), 2, 100, UINT64_MAX);
  ASSERT_EQ(first.status().to_string(), "ok");
  EXPECT_EQ(first->epoch(), 1u);
  EXPECT_TRUE(first->check(UINT64_MAX).ok());
  const auto soon = [&] { return world_.host(1).now_ns() + 10 * kMs; };
  EXPECT_EQ(RoleLease::acquire(world_.pool(1), 2, 100, soon()).status().code(),
            Code::deadline_exceeded);
  world_.now_ns += 1000 * kMs;
  EXPECT_FALSE(first->is_valid());
  // It counts from when it first saw the lease, in this very call.
  auto second = RoleLease::acquire(world_.pool(1), 2, 100, UINT64_MAX);
  ASSERT_EQ(second.status().to_string(), "ok");
  EXPECT_EQ(second->epoch(), 2u);
  EXPECT_TRUE(second->is_valid());
  EXPECT_EQ(first->renew(UINT64_MAX).to_string(),
            "revoked: the role held under epoch 1 was taken over by process 0 of host 1, under "
            "epoch 2");
  EXPECT_EQ(first->check(UINT64_MAX).code(), Code::revoked);
  EXPECT_TRUE(first->release(UINT64_MAX).ok()) << "which changes nothing";
  EXPECT_TRUE(second->check(UINT64_MAX).ok());
  ASSERT_TRUE(second->release(UINT64_MAX).ok());
  EXPECT_FALSE(second->is_valid());
  // Free at once.
  const std::uint64_t before_ns = world_.now_ns;
  EXPECT_EQ(RoleLease::acquire(world_.pool(0), 2, 100, UINT64_MAX)->epoch(), 3u);
  EXPECT_EQ(world_.now_ns, before_ns);
}

TEST_F(RoleTest, an_expired_lease_that_nobody_took_goes_on) {
  auto lease = RoleLease::acquire(world_.pool(0), 0, 10, UINT64_MAX);
  world_.now_ns += 1000 * kMs;
  EXPECT_FALSE(lease->is_valid());
  EXPECT_TRUE(lease->renew(UINT64_MAX).ok());
  EXPECT_TRUE(lease->is_valid());
  EXPECT_EQ(lease->epoch(), 1u);
}

TEST_F(RoleTest, a_holder_that_is_proven_dead_is_not_waited_for) {
  RoleConfig config;
  config.duration_ms = kMaxRoleDurationMs;
  config.owner.process.pid = 4711;
  ASSERT_TRUE(
      RoleLease::acquire(Agreement::open(world_.pool(0), 1).value(), config, UINT64_MAX).ok());
  config.owner.process.pid = 4712;
  const std::uint64_t deadline_ns = world_.host(1).now_ns() + kMs;
  EXPECT_EQ(RoleLease::acquire(Agreement::open(world_.pool(1), 1).value(), config, deadline_ns)
                .status()
                .to_string(),
            "deadline_exceeded: the role is held by process 4711 of host 0 under epoch 1");
  config.is_dead = [](const Lease& holder) { return holder.process.pid == 4711; };
  auto taken = RoleLease::acquire(Agreement::open(world_.pool(1), 1).value(), config, UINT64_MAX);
  ASSERT_EQ(taken.status().to_string(), "ok");
  EXPECT_EQ(taken->epoch(), 2u);
}

TEST_F(RoleTest, bounds_are_checked) {
  EXPECT_EQ(RoleLease::acquire(world_.pool(0), 7, 100, 0).status().code(), Code::invalid_argument);
  EXPECT_EQ(RoleLease::acquire(world_.pool(0), 0, 9, 0).status().code(), Code::invalid_argument);
  EXPECT_EQ(RoleLease::acquire(world_.pool(0), 0, 3'600'001, 0).status().code(),
            Code::invalid_argument);
  EXPECT_EQ(Agreement::open(world_.pool(0), 8).status().code(), Code::invalid_argument);
}

TEST(Membership, epochs_tell_who_is_in_since_when) {
  World world(3, 9);
  auto zero = MembershipView::open(world.pool(0)).value();
  auto one = MembershipView::open(world.pool(1)).value();
  auto two = MembershipView::open(world.pool(2)).value();
  EXPECT_EQ(zero.look(UINT64_MAX)->epoch, 0u);
  EXPECT_EQ(zero.join(UINT64_MAX)->epoch, 1u);
  EXPECT_EQ(two.join(UINT64_MAX)->epoch, 2u);
  EXPECT_EQ(zero.join(UINT64_MAX)->epoch, 2u) << "it is a member";
  Members members = one.look(UINT64_MAX).value();
  EXPECT_EQ(members.since[0], 1u);
  EXPECT_EQ(members.since[1], 0u);
  EXPECT_EQ(members.since[2], 2u);

  // Host 2 falls silent, and is removed by both at once.
  const auto turn = [&](bool with_two) {
    EXPECT_TRUE(zero.beat(UINT64_MAX).ok());
    if (with_two) {
      EXPECT_TRUE(two.beat(UINT64_MAX).ok());
    }
    world.now_ns += 10 * kMs;
    return zero.silent(members, 25 * kMs);
  };
  EXPECT_EQ(turn(true), 0u);
  EXPECT_EQ(turn(true), 0u);
  EXPECT_EQ(turn(false), 0u);
  EXPECT_EQ(turn(false), 0u);
  EXPECT_EQ(turn(false), 1u << 2);
  EXPECT_EQ(zero.remove(1u << 2, UINT64_MAX)->epoch, 3u);
  members = one.remove(1u << 2, UINT64_MAX).value();
  EXPECT_EQ(members.epoch, 3u) << "the same change is made once";
  EXPECT_FALSE(members.is_member(2));

  // It wakes: what it could write to is in quarantine until it says that it has understood.
  EXPECT_TRUE(zero.is_quarantined(2, members));
  EXPECT_FALSE(two.look(UINT64_MAX)->is_member(2));
  EXPECT_TRUE(two.acknowledge(3, UINT64_MAX).ok());
  EXPECT_FALSE(zero.is_quarantined(2, members));
  EXPECT_EQ(two.join(UINT64_MAX)->since[2], 4u);
  EXPECT_TRUE(two.acknowledge(1, UINT64_MAX).ok());
  EXPECT_EQ(zero.acknowledged(2), 3u) << "it never goes back";
  EXPECT_EQ(zero.acknowledged(77), 0u);
}

}  // namespace
}  // namespace penstock
