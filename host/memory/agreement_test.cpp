#include "penstock/memory/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "penstock/memory/agreement_ballot.h"
#include "penstock/memory/agreement_oracle_test.h"
#include "penstock/memory/incoherent_memory_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSoon = UINT64_MAX;

// Participants that each run one ballot for decision 1, step by step.
class Ballots {
 public:
  Ballots(std::uint32_t participants, std::uint64_t seed, std::uint32_t depth = 2)
      : memory_(agreement_bytes(participants, depth)) {
    for (std::uint32_t who = 0; who < participants; ++who) {
      hosts_.push_back(std::make_unique<IncoherentHost>(memory_, seed * 64 + who));
      spaces_.push_back({hosts_[who]->base(), participants, depth});
      ballots_.emplace_back();
    }
  }

  void begin(std::uint32_t who, std::uint64_t number, std::uint32_t text) {
    const AgreementValue value = to_agreement_value(text);
    oracle.propose(number, value);
    number_ = number;
    const AgreementBlocks blocks(SharedMemory(*hosts_[who], Coherence::software), spaces_[who]);
    ballots_[who].emplace(*hosts_[who], blocks, who, number, value);
  }
  bool is_running(std::uint32_t who) const { return ballots_[who].has_value(); }
  Ballot& ballot(std::uint32_t who) { return *ballots_[who]; }
  IncoherentHost& host(std::uint32_t who) { return *hosts_[who]; }
  std::uint32_t participants() const { return static_cast<std::uint32_t>(hosts_.size()); }

  // False once it is through.
  bool step(std::uint32_t who) {
    if (!ballots_[who]) return false;
    const Ballot::State state = ballots_[who]->step();
    if (state == Ballot::State::running || state == Ballot::State::lost) return true;
    EXPECT_NE(state, Ballot::State::damaged);
    if (state == Ballot::State::decided) oracle.decide(number_, ballots_[who]->value());
    ballots_[who].reset();
    return false;
  }
  void run(std::uint32_t who) {
    while (step(who)) {
    }
  }
  // Forgets the process; its host's cache lives on, or not.
  void crash(std::uint32_t who, bool with_cache) {
    ballots_[who].reset();
    if (with_cache) hosts_[who]->drop_cache();
  }

  AgreementOracle oracle;

 private:
  LineBuffer memory_;
  std::vector<std::unique_ptr<IncoherentHost>> hosts_;
  std::vector<AgreementSpace> spaces_;
  std::vector<std::optional<Ballot>> ballots_;
  std::uint64_t number_ = 0;
};

// A reader whom a writer overtakes, between any two of the four lines: what it gets is no older
// than what was there when it began. In the end it gets the last.
TEST(AgreementBlocks, a_read_is_never_older_than_its_beginning) {
  LineBuffer memory(agreement_bytes(1, 2));
  IncoherentHost writer(memory, 1);
  IncoherentHost reader(memory, 2);
  const AgreementBlocks from(SharedMemory(writer, Coherence::software), {writer.base(), 1, 2});
  const AgreementBlocks to(SharedMemory(reader, Coherence::software), {reader.base(), 1, 2});
  std::mt19937_64 random(3);
  AgreementRecord record{};
  record.number = 1;
  std::uint64_t unsettled = 0;
  std::uint64_t overtaken = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    const std::uint64_t least = record.sequence;
    const auto rate = 1 + random() % 6;
    reader.on_access = [&] {
      if (random() % rate == 0) {
        record.promised = record.sequence + 1;
        from.store(1, 0, &record);
      }
    };
    const auto found = to.load(1, 0);
    if (!found) {
      ++unsettled;
      continue;
    }
    ASSERT_GE(found->sequence, least) << turn;
    ASSERT_EQ(found->promised, found->sequence) << "half of one write, half of another";
    overtaken += found->sequence < record.sequence;
  }
  reader.on_access = nullptr;
  EXPECT_EQ(to.load(1, 0)->sequence, record.sequence);
  EXPECT_GT(unsettled, 1000u);
  EXPECT_GT(overtaken, 1000u);
}

// Wherever a writer stops, the block is what it was before, or what it was to become.
TEST(AgreementBlocks, a_writer_that_stops_leaves_a_whole_block) {
  for (std::uint64_t writes = 1; writes < 5; ++writes) {
    for (std::uint32_t evicted = 0; evicted < 4; ++evicted) {
      LineBuffer memory(agreement_bytes(1, 2));
      IncoherentHost writer(memory, 1);
      IncoherentHost reader(memory, 2);
      const AgreementBlocks from(SharedMemory(writer, Coherence::software), {writer.base(), 1, 2});
      const AgreementBlocks to(SharedMemory(reader, Coherence::software), {reader.base(), 1, 2});
      AgreementRecord record{};
      record.number = 1;
      for (std::uint64_t write = 1; write < writes; ++write) from.store(1, 0, &record);
      // The last write stays in the cache, but for the lines that are evicted.
      const AgreementBlocks lazy(SharedMemory(writer, Coherence::hardware), {writer.base(), 1, 2});
      lazy.store(1, 0, &record);
      const std::size_t line = 4 + writes % 2 * 2;  // slot 1; two lines a copy
      if ((evicted & 1) != 0) writer.evict(line);
      if ((evicted & 2) != 0) writer.evict(line + 1);
      writer.drop_cache();
      EXPECT_EQ(to.load(1, 0)->sequence, evicted == 3 ? writes : writes - 1) << evicted;
      EXPECT_EQ(from.load(1, 0)->sequence, evicted == 3 ? writes : writes - 1) << evicted;
    }
  }
}

TEST(Ballot, one_alone_decides_its_own_value) {
  Ballots ballots(3, 1);
  ballots.begin(1, 1, 77);
  ballots.run(1);
  EXPECT_EQ(ballots.oracle.value(1), to_agreement_value(std::uint32_t{77}));
}

TEST(Ballot, a_later_one_takes_over_what_an_earlier_one_had_accepted) {
  Ballots ballots(2, 1);
  ballots.begin(0, 1, 10);
  // recall, promise, read, accept: the value stands, but is not decided.
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(ballots.step(0));
  ballots.crash(0, true);
  ballots.begin(1, 1, 20);
  ballots.run(1);
  EXPECT_EQ(ballots.oracle.value(1), to_agreement_value(std::uint32_t{10}));
}

TEST(Ballot, a_value_that_was_never_accepted_leaves_no_trace) {
  Ballots ballots(2, 1);
  ballots.begin(0, 1, 10);
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(ballots.step(0));
  ballots.crash(0, true);
  ballots.begin(1, 1, 20);
  ballots.run(1);
  EXPECT_EQ(ballots.oracle.value(1), to_agreement_value(std::uint32_t{20}));
}

// All interleavings of two participants up to a number of steps, then one after the other.
TEST(Ballot, two_agree_in_every_interleaving) {
  constexpr std::uint32_t kSteps = 14;
  std::set<AgreementValue> values;
  for (std::uint32_t schedule = 0; schedule < 1u << kSteps; ++schedule) {
    Ballots ballots(2, 1);
    ballots.begin(0, 1, 10);
    ballots.begin(1, 1, 20);
    for (std::uint32_t step = 0; step < kSteps; ++step) ballots.step(schedule >> step & 1);
    ballots.run(0);
    ballots.run(1);
    ASSERT_EQ(ballots.oracle.violation(), "") << "schedule " << schedule;
    ASSERT_EQ(ballots.oracle.decisions(1), 2u);
    values.insert(*ballots.oracle.value(1));
  }
  EXPECT_EQ(values.size(), 2u) << "neither always wins";
}

// One stops for good after each of its steps; the other, and its own next process, come through.
TEST(Ballot, a_crash_at_any_step_leaves_others_able_to_decide) {
  for (const bool with_cache : {false, true}) {
    for (std::uint32_t steps = 0; steps < 12; ++steps) {
      for (std::uint32_t between = 0; between < 12; ++between) {
        Ballots ballots(2, steps * 64 + between);
        ballots.begin(0, 1, 10);
        ballots.begin(1, 1, 20);
        for (std::uint32_t step = 0; step < between; ++step) ballots.step(1);
        for (std::uint32_t step = 0; step < steps; ++step) ballots.step(0);
        ballots.crash(0, with_cache);
        ballots.run(1);
        ballots.begin(0, 1, 30);
        ballots.run(0);
        ASSERT_EQ(ballots.oracle.violation(), "") << steps << " " << between;
        ASSERT_GE(ballots.oracle.decisions(1), 2u);
      }
    }
  }
}

// Any number of steps of anyone in between each access of anyone, lines evicted at any time, and
// processes and hosts that fail and come back.
TEST(Ballot, several_agree_however_they_interleave_and_fail) {
  std::uint64_t crashes = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    const auto participants = static_cast<std::uint32_t>(2 + random() % 3);
    Ballots ballots(participants, seed);
    std::vector<bool> is_stepping(participants);
    std::function<void(std::uint32_t)> step = [&](std::uint32_t who) {
      if (is_stepping[who]) return;
      if (!ballots.is_running(who)) {
        ballots.begin(who, 1, static_cast<std::uint32_t>(random() % 1000));
      } else if (random() % 64 == 0) {
        ballots.crash(who, random() % 2 == 0);
        ++crashes;
        return;
      }
      is_stepping[who] = true;
      const std::uint32_t before = ballots.ballot(who).attempts();
      if (ballots.step(who)) lost += ballots.ballot(who).attempts() > before && before > 0;
      is_stepping[who] = false;
    };
    for (std::uint32_t who = 0; who < participants; ++who) {
      ballots.host(who).evictions_of_256 = 32;
      ballots.host(who).on_access = [&] {
        if (random() % 8 == 0) step(static_cast<std::uint32_t>(random() % participants));
      };
    }
    for (int turn = 0; turn < 150; ++turn)
      step(static_cast<std::uint32_t>(random() % participants));
    for (std::uint32_t who = 0; who < participants; ++who) {
      if (!ballots.is_running(who)) ballots.begin(who, 1, 5);
      ballots.host(who).on_access = nullptr;
    }
    for (std::uint32_t who = 0; who < participants; ++who) ballots.run(who);
    ASSERT_EQ(ballots.oracle.violation(), "") << "seed " << seed;
    ASSERT_GE(ballots.oracle.decisions(1), participants) << "seed " << seed;
  }
  EXPECT_GT(crashes, 1000u);
  EXPECT_GT(lost, 1000u);
}

// One that slept through decisions 1 to 3 finds its blocks recycled and decides nothing.
TEST(Ballot, a_late_one_decides_nothing_of_what_was_recycled) {
  for (int steps = 1; steps < 6; ++steps) {
    Ballots ballots(2, 1);
    ballots.begin(0, 1, 10);
    for (int step = 0; step < steps; ++step) ASSERT_TRUE(ballots.step(0)) << step;
    // As many as it takes until slot 1 serves decision 3.
    Ballot late = ballots.ballot(0);
    std::optional<AgreementValue> first;
    for (std::uint32_t number = 1; number <= 3; ++number) {
      ballots.begin(1, number, 20 + number);
      ballots.run(1);
      if (number == 1) first = ballots.oracle.value(1);
    }
    Ballot::State state = Ballot::State::running;
    while (state == Ballot::State::running || state == Ballot::State::lost) state = late.step();
    // After 5 steps it had read everything twice, and its value was the decision already.
    EXPECT_EQ(state, steps < 5 ? Ballot::State::recycled : Ballot::State::decided) << steps;
    EXPECT_EQ(first, to_agreement_value(steps < 4 ? 21u : 10u));
    if (steps == 5) {
      EXPECT_EQ(late.value(), first);
    }
  }
}

class AgreementTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kHosts = 3;
  Agreement open(std::uint32_t host, Coherence coherence = Coherence::software) {
    return Agreement::open(host_[host], coherence, {host_[host].base(), kHosts, 2}, host).value();
  }
  static AgreementValue text(std::uint32_t value) { return to_agreement_value(value); }

  LineBuffer memory_{agreement_bytes(kHosts, 2)};
  IncoherentHost host_[kHosts] = {{memory_, 1}, {memory_, 2}, {memory_, 3}};
};

TEST_F(AgreementTest, a_history_goes_on_from_host_to_host) {
  Agreement zero = open(0), one = open(1), two = open(2);
  EXPECT_EQ(zero.latest(kSoon)->number, 0u);
  for (std::uint32_t number = 1; number < 40; ++number) {
    Agreement& author = number % 3 == 0 ? zero : number % 3 == 1 ? one : two;
    auto decision = author.propose(number, text(number), kSoon);
    ASSERT_EQ(decision.status().to_string(), "ok");
    EXPECT_EQ(decision->value, text(number));
    for (Agreement* each : {&zero, &one, &two}) {
      auto newest = each->latest(kSoon);
      ASSERT_EQ(newest.status().to_string(), "ok");
      EXPECT_EQ(newest->number, number);
      EXPECT_EQ(newest->value, text(number));
    }
    // The same question again has the same answer, whoever asks.
    EXPECT_EQ(zero.propose(number, text(1000), kSoon)->value, text(number));
    EXPECT_EQ(two.decided(number, kSoon).value()->value, text(number));
  }
}

TEST_F(AgreementTest, what_was_recycled_is_out_of_range) {
  Agreement zero = open(0), one = open(1);
  for (std::uint32_t number = 1; number <= 4; ++number) {
    ASSERT_TRUE(zero.propose(number, text(number), kSoon).ok());
  }
  EXPECT_EQ(one.decided(3, kSoon).value()->value, text(3));
  EXPECT_FALSE(one.decided(5, kSoon).value().has_value());
  EXPECT_EQ(one.decided(2, kSoon).status().code(), Code::out_of_range);
  EXPECT_EQ(one.propose(2, text(9), kSoon).status().to_string(),
            "out_of_range: decision 2 is no longer kept: the last 2 are; ask for the latest one");
  EXPECT_EQ(
      one.propose(6, text(9), kSoon).status().to_string(),
      "invalid_argument: decision 6 cannot be proposed: the newest one is 4, so that the next "
      "is 5");
  EXPECT_EQ(one.propose(0, text(9), kSoon).status().code(), Code::invalid_argument);
}

TEST_F(AgreementTest, update_repeats_until_its_value_is_the_one) {
  Agreement zero = open(0), one = open(1);
  int calls = 0;
  auto decision = zero.update(
      [&](const Decision& newest) -> std::optional<AgreementValue> {
        // Twice another one gets ahead.
        if (++calls <= 2) {
          const auto other = one.update(
              [&](const Decision&) { return text(100 + static_cast<std::uint32_t>(calls)); },
              kSoon);
          EXPECT_TRUE(other.ok());
        }
        return text(static_cast<std::uint32_t>(newest.number));
      },
      kSoon);
  ASSERT_EQ(decision.status().to_string(), "ok");
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(decision->number, 3u);
  EXPECT_EQ(decision->value, text(2));
  auto kept = zero.update([](const Decision&) { return std::nullopt; }, kSoon);
  EXPECT_EQ(kept->number, 3u);
}

TEST_F(AgreementTest, a_deadline_ends_a_contest) {
  Agreement zero = open(0);
  const AgreementBlocks other(SharedMemory(host_[1], Coherence::software),
                              {host_[1].base(), kHosts, 2});
  // Another always comes with a higher ballot before the second look.
  std::uint64_t ballot = 1000;
  bool busy = false;
  host_[0].on_access = [&] {
    if (std::exchange(busy, true)) return;
    AgreementRecord record = other.load(1, 1).value();
    record.number = 1;
    record.promised = ballot += 1000;
    other.store(1, 1, &record);
    busy = false;
  };
  const std::uint64_t deadline_ns = Platform::host().now_ns() + 20'000'000;
  auto decision = zero.propose(1, text(1), deadline_ns);
  EXPECT_EQ(decision.status().code(), Code::deadline_exceeded);
  EXPECT_THAT(decision.status().message(), HasSubstr("decision 1 was not reached: participant 0"));
  EXPECT_LT(Platform::host().now_ns(), deadline_ns + 10'000'000'000);
}

TEST_F(AgreementTest, a_damaged_block_is_named) {
  Agreement zero = open(0), one = open(1);
  ASSERT_TRUE(zero.propose(1, text(1), kSoon).ok());
  // Both copies of participant 0 in slot 1, of 3 participants with blocks of 256 bytes.
  memory_.data()[3 * 256 + 50] ^= std::byte{1};
  memory_.data()[3 * 256 + 128 + 50] ^= std::byte{1};
  const char* expected =
      "corrupt: the agreement block of participant 0 in slot 1 is damaged: neither of its copies "
      "has a right checksum";
  EXPECT_EQ(one.latest(kSoon).status().to_string(), expected);
  EXPECT_EQ(one.decided(1, kSoon).status().to_string(), expected);
  EXPECT_EQ(one.propose(1, text(2), kSoon).status().to_string(), expected);
  EXPECT_EQ(open(0).propose(1, text(2), kSoon).status().to_string(), expected);
}

// Random bytes are no block, and a block of another slot is none either.
TEST_F(AgreementTest, any_bytes_are_fine) {
  std::mt19937_64 random(5);
  for (int turn = 0; turn < 20; ++turn) {
    for (std::size_t at = 0; at < memory_.size(); ++at) {
      memory_.data()[at] = static_cast<std::byte>(random());
    }
    EXPECT_EQ(open(0).latest(kSoon).status().code(), Code::corrupt);
    EXPECT_EQ(open(1).propose(1, text(1), kSoon).status().code(), Code::corrupt);
  }
  for (auto& host : host_) host.drop_cache();
  format_agreement(host_[0], Coherence::software, {host_[0].base(), kHosts, 2});
  EXPECT_EQ(open(1).propose(1, text(1), kSoon).status().to_string(), "ok");
}

TEST_F(AgreementTest, bounds_are_checked) {
  const auto code = [&](AgreementSpace space, std::uint32_t who) {
    return Agreement::open(host_[0], Coherence::software, space, who).status().code();
  };
  std::byte* base = host_[0].base();
  EXPECT_EQ(code({base, 3, 2}, 2), Code::ok);
  EXPECT_EQ(code({base, 3, 2}, 3), Code::invalid_argument);
  EXPECT_EQ(code({base, 0, 2}, 0), Code::invalid_argument);
  EXPECT_EQ(code({base, 65, 2}, 0), Code::invalid_argument);
  EXPECT_EQ(code({base, 3, 1}, 0), Code::invalid_argument);
  EXPECT_EQ(code({base, 3, 65}, 0), Code::invalid_argument);
  EXPECT_EQ(code({base + 8, 3, 2}, 0), Code::invalid_argument);
  EXPECT_EQ(code({nullptr, 3, 2}, 0), Code::invalid_argument);
}

// Where the memory is coherent nothing is flushed, but a store may still pass a later load.
TEST_F(AgreementTest, coherent_memory_still_takes_a_full_fence_after_each_write) {
  class Counting final : public ForwardingPlatform {
   public:
    void write_back(const void*, std::size_t) override { ++flushes; }
    void invalidate(const void*, std::size_t) override { ++flushes; }
    void full_fence() override { ++fences; }
    int flushes = 0;
    int fences = 0;
  };
  Counting platform;
  auto alone = Agreement::open(platform, Coherence::hardware, {memory_.data(), kHosts, 2}, 0);
  ASSERT_TRUE(alone->propose(1, text(4), kSoon).ok());
  EXPECT_EQ(platform.flushes, 0);
  EXPECT_EQ(platform.fences, 3) << "after the promise, the value, and the decision";
}

}  // namespace
}  // namespace penstock
