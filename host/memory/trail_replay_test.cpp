// The schedules under which the models' broken twins fail (tests/models/trails), played against the
// code. The code must keep what the twin breaks; and, so that it is known that the schedule can
// tell, a variant with the twin's fault must not.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "penstock/memory/agreement_ballot.h"
#include "penstock/memory/agreement_members.h"
#include "penstock/memory/agreement_oracle_test.h"
#include "penstock/memory/fence.h"
#include "penstock/memory/inline_block.h"
#include "penstock/memory/line_pool_test.h"
#include "penstock/memory/stepped_threads_test.h"

namespace penstock {
namespace {

struct TrailStep {
  std::uint32_t who;
  std::string what;
  std::uint32_t line;  // or whatever the step's first number is
};

std::vector<TrailStep> read_trail(const std::string& name) {
  std::ifstream file(std::string(PENSTOCK_TRAILS) + "/" + name + ".txt");
  EXPECT_TRUE(file.good()) << name;
  std::vector<TrailStep> steps;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream words(text);
    TrailStep step{0, "", 0};
    words >> step.who >> step.what >> step.line;
    steps.push_back(step);
  }
  EXPECT_FALSE(steps.empty()) << name;
  return steps;
}

// ---- agreement ----

enum class Fault { none, second_read, highest, recycled };

// Disk Paxos as it must not be: the steps of Ballot, for two participants, with one fault.
class FaultyBallot {
 public:
  FaultyBallot(Platform& platform, const AgreementBlocks& blocks, std::uint32_t who,
               std::uint64_t number, const AgreementValue& value, Fault fault)
      : platform_(&platform),
        blocks_(blocks),
        who_(who),
        number_(number),
        value_(value),
        fault_(fault) {}

  // True when value() is the decision.
  bool step() {
    switch (at_++) {
      case 0:
        own_ = blocks_.load(0, who_).value();
        highest_ = own_.number == number_ ? own_.promised : 0;
        return false;
      case 1:
        if (own_.number != number_) own_.accepted = own_.decided = 0;
        own_.number = number_;
        own_.promised = (highest_ / 2 + 1) * 2 + who_;
        accepted_ = own_.accepted;
        accepted_value_ = own_.value;
        return store();
      case 2:
        hear();
        return false;
      case 3:
        own_.accepted = own_.promised;
        own_.value = accepted_ > 0 ? accepted_value_ : value_;
        if (fault_ == Fault::second_read) at_ = 5;
        return store();
      case 4:
        hear();
        return false;
      default:
        own_.decided = 1;
        store();
        return true;
    }
  }
  const AgreementValue& value() const { return own_.value; }

 private:
  bool store() {
    blocks_.store(0, who_, &own_);
    platform_->full_fence();
    return false;
  }
  void hear() {
    const AgreementRecord other = blocks_.load(0, 1 - who_).value();
    if (other.number != number_) return;  // a later number, too: only `recycled` comes here so
    highest_ = std::max(highest_, other.promised);
    if (other.promised > own_.promised) at_ = 1;
    const bool takes = fault_ == Fault::highest ? accepted_ == 0 && other.accepted > 0
                                                : other.accepted > accepted_;
    if (!takes) return;
    accepted_ = other.accepted;
    accepted_value_ = other.value;
  }

  Platform* platform_;
  AgreementBlocks blocks_;
  std::uint32_t who_;
  std::uint64_t number_;
  AgreementValue value_;
  Fault fault_;
  int at_ = 0;
  AgreementRecord own_{};
  std::uint64_t highest_ = 0;
  std::uint64_t accepted_ = 0;
  AgreementValue accepted_value_{};
};

// Two participants in blocks of one slot, as in the model, so that decision 2 recycles decision 1.
class AgreementReplay {
 public:
  explicit AgreementReplay(Fault fault) : fault_(fault) {}

  // Steps as the trail says; then, without a fault, each goes on until it is through.
  std::string play(const std::vector<TrailStep>& trail) {
    for (const TrailStep& each : trail) {
      if (each.what == "recall") begin(each.who);
      if (each.what != "crash") step(each.who);
    }
    for (std::uint32_t who = 0; who < 2 && fault_ == Fault::none; ++who) {
      for (int turn = 0; turn < 100 && step(who); ++turn) {
      }
    }
    return oracle_.violation();
  }
  std::uint64_t decisions() { return oracle_.decisions(1) + oracle_.decisions(2); }

 private:
  void begin(std::uint32_t who) {
    const AgreementBlocks blocks(SharedMemory(hosts_[who], Coherence::software),
                                 {hosts_[who].base(), 2, 1});
    const std::uint64_t number = known_[who] + 1;
    const AgreementValue value = to_agreement_value(100 * number + who);
    oracle_.propose(number, value);
    if (fault_ == Fault::none) {
      ballots_[who].emplace(hosts_[who], blocks, who, number, value);
    } else {
      faulty_[who].emplace(hosts_[who], blocks, who, number, value, fault_);
    }
  }
  bool step(std::uint32_t who) {
    if (ballots_[who]) {
      const Ballot::State state = ballots_[who]->step();
      if (state == Ballot::State::running || state == Ballot::State::lost) return true;
      if (state == Ballot::State::decided) decide(who, ballots_[who]->value());
      ballots_[who].reset();
    } else if (faulty_[who] && faulty_[who]->step()) {
      decide(who, faulty_[who]->value());
      faulty_[who].reset();
    }
    return false;
  }
  void decide(std::uint32_t who, const AgreementValue& value) {
    oracle_.decide(++known_[who], value);
  }

  Fault fault_;
  AgreementOracle oracle_;
  LineBuffer memory_{agreement_bytes(2, 1)};
  IncoherentHost hosts_[2] = {{memory_, 1}, {memory_, 2}};
  std::optional<Ballot> ballots_[2];
  std::optional<FaultyBallot> faulty_[2];
  std::uint64_t known_[2] = {};
};

class AgreementTrail : public ::testing::TestWithParam<std::pair<const char*, Fault>> {};

TEST_P(AgreementTrail, is_survived_by_the_code_alone) {
  const auto trail = read_trail(GetParam().first);
  AgreementReplay good(Fault::none);
  EXPECT_EQ(good.play(trail), "");
  EXPECT_GE(good.decisions(), 1u);
  AgreementReplay bad(GetParam().second);
  EXPECT_EQ(bad.play(trail), "decision 1 was decided twice, and differently");
}

INSTANTIATE_TEST_SUITE_P(All, AgreementTrail,
                         ::testing::Values(std::pair("agreement.second_read", Fault::second_read),
                                           std::pair("agreement.highest", Fault::highest),
                                           std::pair("agreement.recycled", Fault::recycled)),
                         [](const auto& test) { return std::string(test.param.first).substr(10); });

// ---- fence and inlined payload ----

constexpr std::uint32_t kPayloadLine = 0;
constexpr std::uint32_t kFenceLine = 1;

// A host that reports what it does, and may leave one thing out.
class TrailHost final : public IncoherentHost {
 public:
  using IncoherentHost::IncoherentHost;
  void write_back(const void* data, std::size_t bytes) override {
    before("write_back", line_of(data));
    if (!leaves_out("write_back", line_of(data))) IncoherentHost::write_back(data, bytes);
  }
  void invalidate(const void* data, std::size_t bytes) override {
    before("invalidate", line_of(data));
    if (!leaves_out("invalidate", line_of(data))) IncoherentHost::invalidate(data, bytes);
  }
  void store_fence() override {
    before("store_fence", 0);
    if (!leaves_out("store_fence", 0)) IncoherentHost::store_fence();
  }
  void full_fence() override {
    before("full_fence", 0);
    if (!leaves_out("full_fence", payload_observed)) IncoherentHost::full_fence();
  }
  void yield() override {}
  void pause() override {}
  void sleep_ns(std::uint64_t) override {}

  std::function<void()> point;
  std::string doing;     // what comes after the present point
  std::string left_out;  // "": nothing
  std::uint32_t left_line = 0;
  std::uint32_t payload_observed = 0;  // 1: the fences to come are those of the payload

 private:
  std::uint32_t line_of(const void* data) const {
    return static_cast<std::uint32_t>(
        static_cast<std::size_t>(static_cast<const std::byte*>(data) - base()) / kLineBytes);
  }
  void before(const char* what, std::uint32_t line) {
    doing = what + std::string(" ") + std::to_string(line);
    if (point) point();
  }
  bool leaves_out(const std::string& what, std::uint32_t line) const {
    return what == left_out && line == left_line;
  }
};

// A writer and a reader over a few lines, as stepped threads.
class LineReplay {
 public:
  LineReplay() {
    for (std::uint32_t who = 0; who < 2; ++who) {
      hosts[who].point = [this, who] { threads_.point(who); };
    }
  }
  ~LineReplay() {
    for (std::uint32_t who = 0; who < 2; ++who) threads_.stop(who);
  }
  void start(std::uint32_t who, std::function<void()> body) {
    threads_.start(who, std::move(body));
  }
  // Plays the trail, then both to their ends in turn.
  void play(const std::vector<TrailStep>& trail) {
    for (const TrailStep& each : trail) {
      if (each.who == 2) {
        // The writer's dirty line is evicted, or a clean one of the reader's.
        hosts[each.what == "clean" ? 0 : 1].evict(each.line);
      } else if (each.what == "store") {
        // Stored, and not yet written back.
        const std::string next = "write_back " + std::to_string(each.line);
        if (!begun_[each.who]) step(each.who);
        while (hosts[each.who].doing != next && step(each.who)) {
        }
      } else if (each.what == "word" || each.what == "sequence") {
        if (!begun_[each.who]) step(each.who);
      } else {
        until(each);
      }
    }
    for (int turn = 0; turn < 1000; ++turn) {
      const bool reads = step(1);
      if (step(0)) continue;
      if (!reads) return;
      hosts[0].evict(kFenceLine);  // a cache keeps nothing back for ever
    }
    ADD_FAILURE() << "it does not end";
  }

  LineBuffer memory{8 * kLineBytes};
  TrailHost hosts[2] = {{memory, 1}, {memory, 2}};
  LinePool pools[2] = {{hosts[0], 0, 2, memory.size()}, {hosts[1], 1, 2, memory.size()}};

 private:
  bool step(std::uint32_t who) {
    begun_[who] = true;
    return threads_.step(who);
  }
  // Up to and with this step; or no further than a few, when the code waits for something.
  void until(const TrailStep& wanted) {
    if (!begun_[wanted.who]) step(wanted.who);
    const std::string name = wanted.what + " " + std::to_string(wanted.line);
    for (int turn = 0; turn < 20 && threads_.is_running(wanted.who); ++turn) {
      const bool found = hosts[wanted.who].doing == name;
      if (!is_call(wanted.what) || !step(wanted.who) || found) return;
    }
  }
  static bool is_call(const std::string& what) {
    return what == "write_back" || what == "invalidate" || what == "store_fence" ||
           what == "full_fence";
  }

  SteppedThreads threads_{2};
  bool begun_[2] = {};
};

// Publishes one payload and its fence; the reader returns what it read.
std::uint64_t play_fence(const std::string& trail, std::uint32_t faulty_host,
                         const std::string& left_out) {
  LineReplay replay;
  TrailHost& writer = replay.hosts[0];
  TrailHost& reader = replay.hosts[1];
  replay.hosts[faulty_host].left_out = left_out;
  replay.hosts[faulty_host].left_line = left_out == "full_fence" ? 1 : kPayloadLine;
  const auto payload = [](TrailHost& host) {
    return reinterpret_cast<std::uint64_t*>(host.base() + kPayloadLine * kLineBytes);
  };
  std::uint64_t read = 0;
  replay.start(0, [&] {
    *payload(writer) = 77;
    replay.pools[0].publish(payload(writer), sizeof(std::uint64_t));
    Fence(replay.pools[0], writer.base() + kFenceLine * kLineBytes).signal(1);
  });
  replay.start(1, [&] {
    const Fence fence(replay.pools[1], reader.base() + kFenceLine * kLineBytes);
    while (!fence.reached(1)) {
    }
    reader.payload_observed = 1;
    replay.pools[1].observe(payload(reader), sizeof(std::uint64_t));
    read = *payload(reader);
  });
  replay.play(read_trail(trail));
  return read;
}

TEST(FenceTrail, is_survived_by_the_code_alone) {
  struct Case {
    const char* trail;
    std::uint32_t faulty_host;
    const char* left_out;
  };
  for (const Case& each :
       {Case{"fence.write_back", 0, "write_back"}, Case{"fence.store_fence", 0, "store_fence"},
        Case{"fence.invalidate", 1, "invalidate"}, Case{"fence.full_fence", 1, "full_fence"}}) {
    EXPECT_EQ(play_fence(each.trail, 1, ""), 77u) << each.trail;
    EXPECT_EQ(play_fence(each.trail, each.faulty_host, each.left_out), 0u)
        << each.trail << ": the schedule does not tell the fault";
  }
}

// The collectives' use of inlined payloads: a slot serves again two passes later, once the reader's
// progress fence says so. Returns the first pass that was read wrongly, 0 if none.
std::uint64_t play_inline(const std::string& trail, bool waits) {
  constexpr std::uint64_t kPasses = 5;
  constexpr std::uint32_t kProgressLine = 2;
  LineReplay replay;
  std::uint64_t wrong = 0;
  const auto block = [&](std::uint32_t who, std::uint64_t pass) {
    return InlineBlock(replay.pools[who], replay.hosts[who].base() + (pass & 1) * kLineBytes);
  };
  const auto progress = [&](std::uint32_t who) {
    return Fence(replay.pools[who], replay.hosts[who].base() + kProgressLine * kLineBytes);
  };
  replay.start(0, [&] {
    for (std::uint64_t pass = 1; pass <= kPasses; ++pass) {
      while (waits && pass > 2 && !progress(0).reached(pass - 2)) {
      }
      const std::uint64_t payload[4] = {pass, pass, pass, pass};
      block(0, pass).write(pass, 9, payload, sizeof payload);
    }
    replay.hosts[0].store_fence();
  });
  replay.start(1, [&] {
    for (std::uint64_t pass = 1; pass <= kPasses; ++pass) {
      std::uint64_t payload[4] = {};
      std::uint64_t taken = 0;
      std::uint64_t tag = 0;
      int looks = 0;
      while (block(1, pass).read(pass, 9, UINT64_MAX, payload, sizeof payload, &taken, &tag) !=
             InlineBlock::Arrival::complete) {
        // A pass that was overwritten before it was read never comes.
        if (++looks > 200) break;
      }
      if (looks > 200 || payload[0] != pass || payload[3] != pass) {
        wrong = pass;
        return;
      }
      progress(1).signal(pass);
    }
  });
  replay.play(read_trail(trail));
  return wrong;
}

TEST(InlineTrail, is_survived_by_the_code_alone) {
  EXPECT_EQ(play_inline("inline.reuse", true), 0u);
  EXPECT_NE(play_inline("inline.reuse", false), 0u);
}

// ---- takeover ----

// Host 0 writes two lines while it takes itself for a member; host 1 removes it, and wants to use
// the lines for something else.
class TakeoverReplay {
 public:
  explicit TakeoverReplay(const std::string& fault) : fault_(fault) {
    noted_ = old_host_.join(UINT64_MAX).value();
    members_ = noted_;
  }

  // Whether host 1 reads what it wrote.
  bool play(const std::vector<TrailStep>& trail) {
    for (const TrailStep& each : trail) {
      if (each.who == 0) work(each);
      if (each.who == 1) survive(each);
      if (each.who == 2) watch(each.what);
    }
    if (fault_.empty()) {
      // Everybody goes on to the end.
      work({0, "end", 0});
      watch("note");
      watch("acknowledge");
      for (std::uint32_t word = 0; word < 2; ++word) survive({1, "write", word});
      work({0, "begin", 0});
      for (std::uint32_t word = 0; word < 2; ++word) work({0, "write", word});
    }
    return load(0) == kNew && load(1) == kNew;
  }

 private:
  static constexpr std::uint64_t kOld = 1;
  static constexpr std::uint64_t kNew = 2;
  static constexpr std::size_t kBytes = 256 * kLineBytes;

  std::uint64_t* word(int host, std::uint32_t index) {
    return reinterpret_cast<std::uint64_t*>(hosts_[host].base() + kBytes -
                                            (index + 1) * kLineBytes);
  }
  void store(int host, std::uint32_t index, std::uint64_t value) {
    *word(host, index) = value;
    pools_[host].publish(word(host, index), sizeof value);
    hosts_[host].store_fence();
  }
  std::uint64_t load(std::uint32_t index) {
    pools_[1].observe(word(1, index), sizeof(std::uint64_t));
    return *word(1, index);
  }

  void work(const TrailStep& step) {
    if (step.what == "begin") at_work_ = noted_.is_member(0);
    if (step.what == "write" && at_work_) store(0, step.line, kOld);
    if (step.what == "end") at_work_ = false;
  }
  void watch(const std::string& what) {
    if (what == "note") noted_ = old_host_.look(UINT64_MAX).value();
    if (what == "acknowledge" && (!at_work_ || fault_ == "acknowledge")) {
      EXPECT_TRUE(old_host_.acknowledge(noted_.epoch, UINT64_MAX).ok());
    }
  }
  void survive(const TrailStep& step) {
    if (step.what == "remove") members_ = survivor_.remove(1, UINT64_MAX).value();
    const bool asks = fault_ != "quarantine";
    if (step.what == "write" && !(asks && survivor_.is_quarantined(0, members_))) {
      store(1, step.line, kNew);
    }
  }

  std::string fault_;
  LineBuffer memory_{kBytes};
  IncoherentHost hosts_[2] = {{memory_, 1}, {memory_, 2}};
  LinePool pools_[2] = {{hosts_[0], 0, 2, kBytes}, {hosts_[1], 1, 2, kBytes}};
  MembershipView old_host_ = MembershipView::open(pools_[0]).value();
  MembershipView survivor_ = MembershipView::open(pools_[1]).value();
  Members noted_;
  Members members_;
  bool at_work_ = false;
};

TEST(TakeoverTrail, is_survived_by_the_code_alone) {
  for (const auto& [trail, fault] :
       {std::pair("takeover.quarantine", "quarantine"), std::pair("takeover.check", "quarantine"),
        std::pair("takeover.acknowledge", "acknowledge")}) {
    EXPECT_TRUE(TakeoverReplay("").play(read_trail(trail))) << trail;
    EXPECT_FALSE(TakeoverReplay(fault).play(read_trail(trail))) << trail;
  }
}

}  // namespace
}  // namespace penstock
