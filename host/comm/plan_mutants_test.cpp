// Breaks good plans in every place, one step at a time, and expects the checker to find each.
//
// Two kinds of mutant are as right as the plan, and are left out: one that waits for a rank which
// has itself waited for the same signal (slower, but ordered), and one that reads back from its own
// block what it has copied there from `send`.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "penstock/comm/plan_checker.h"
#include "penstock/comm/plan_keys_test.h"

namespace penstock {
namespace {

class Mutants {
 public:
  explicit Mutants(const PlanKey& key) : key_(key) {
    auto made = make_plan(key);
    if (made.ok()) plan_ = **made;
  }

  // Applies every mutation to every step.
  void run() {
    ASSERT_FALSE(plan_.ranks.empty()) << key_text(key_);
    for (std::uint32_t r = 0; r < plan_.ranks.size(); ++r) {
      for (std::size_t s = 0; s < plan_.ranks[r].size(); ++s) {
        mutate_any(r, s);
        switch (plan_.ranks[r][s].kind) {
          case StepKind::copy:
          case StepKind::reduce:
            mutate_move(r, s);
            break;
          case StepKind::signal:
            mutate_signal(r, s);
            break;
          case StepKind::wait:
          case StepKind::reuse:
            mutate_wait(r, s);
            break;
        }
      }
    }
    mutate_tables();
  }

  static std::map<std::string, int> found;

 private:
  void expect_found(const std::string& what, const std::function<void(Plan&)>& mutate) {
    Plan plan = plan_;
    mutate(plan);
    EXPECT_FALSE(check_plan(plan, 3, 1).empty()) << key_text(key_) << ": " << what;
    ++found[what.substr(0, what.find(':'))];
  }
  void expect_found(const std::string& what, std::uint32_t r, std::size_t s,
                    const std::function<void(std::vector<Step>&, Step&)>& mutate) {
    expect_found(fmt::format("{}: rank {} step {}", what, r, s),
                 [&](Plan& plan) { mutate(plan.ranks[r], plan.ranks[r][s]); });
  }

  // Rank `other`, before its signal `value`, has waited for what `wait` waits for.
  bool implies(std::uint32_t other, const Step& wait) const {
    bool has_waited = false;
    for (const Step& step : plan_.ranks[other]) {
      has_waited |=
          step.kind == StepKind::wait && step.rank == wait.rank && step.value >= wait.value;
      if (step.kind == StepKind::signal && step.value == wait.value) return has_waited;
    }
    return false;
  }
  // Rank r has copied the slice into all of block b before step s.
  bool holds(std::uint32_t r, std::size_t s, std::uint32_t b, const Slice& slice) const {
    for (std::size_t i = 0; i < s; ++i) {
      const Step& step = plan_.ranks[r][i];
      const Slice whole{Space::block, b, 0, slice.bytes};
      if (step.kind == StepKind::copy && step.src[0] == slice && step.dst[0] == whole) return true;
    }
    return false;
  }

  void mutate_any(std::uint32_t r, std::size_t s) {
    const auto at = static_cast<std::ptrdiff_t>(s);
    expect_found("drop a step", r, s,
                 [&](std::vector<Step>& steps, Step&) { steps.erase(steps.begin() + at); });
    expect_found("add bytes that nobody has", r, s, [](std::vector<Step>&, Step& step) {
      step.src.push_back({Space::block, 1u << 30});
    });
    if (s + 1 == plan_.ranks[r].size()) return;
    const StepKind kind = plan_.ranks[r][s].kind;
    const StepKind next = plan_.ranks[r][s + 1].kind;
    const bool moves = kind == StepKind::copy || kind == StepKind::reduce;
    const bool next_moves = next == StepKind::copy || next == StepKind::reduce;
    // The step after a wait needs it, and a signal publishes the step before it, if it touches the
    // pool: but a local copy may stand on either side.
    if ((moves && next == StepKind::signal) ||
        ((kind == StepKind::wait || kind == StepKind::reuse) && next_moves)) {
      expect_found("swap with the next step", r, s,
                   [&](std::vector<Step>& steps, Step&) { std::swap(steps[s], steps[s + 1]); });
    }
  }

  void mutate_move(std::uint32_t r, std::size_t s) {
    const std::uint64_t element = key_.element_bytes;
    const std::size_t sources = plan_.ranks[r][s].src.size();
    expect_found("repeat a step", r, s, [&](std::vector<Step>& steps, Step& step) {
      steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(s), Step(step));
    });
    expect_found("move less", r, s, [&](std::vector<Step>&, Step& step) {
      for (Slice& slice : step.src) slice.bytes -= element;
      for (Slice& slice : step.dst) slice.bytes -= element;
    });
    for (const bool is_source : {true, false}) {
      const std::size_t slices = is_source ? sources : plan_.ranks[r][s].dst.size();
      for (std::size_t i = 0; i < slices; ++i) mutate_slice(r, s, is_source, i);
    }
    for (std::size_t i = 0; i + 1 < sources; ++i) {
      expect_found("swap two sources", r, s, [&](std::vector<Step>&, Step& step) {
        std::swap(step.src[i], step.src[i + 1]);
      });
    }
  }

  void mutate_slice(std::uint32_t r, std::size_t s, bool is_source, std::size_t i) {
    const auto slice_of = [&](Step& step) -> std::vector<Slice>& {
      return is_source ? step.src : step.dst;
    };
    const std::string side = is_source ? " source" : " destination";
    for (const std::int64_t shift : {-64, -8, 8, 64}) {
      expect_found("shift a" + side, r, s, [&](std::vector<Step>&, Step& step) {
        slice_of(step)[i].offset += static_cast<std::uint64_t>(shift);
      });
    }
    expect_found("shorten a" + side, r, s, [&](std::vector<Step>&, Step& step) {
      slice_of(step)[i].bytes -= key_.element_bytes;
    });
    expect_found("lose a" + side, r, s, [&](std::vector<Step>&, Step& step) {
      slice_of(step).erase(slice_of(step).begin() + static_cast<std::ptrdiff_t>(i));
    });
    expect_found("name the next" + side, r, s,
                 [&](std::vector<Step>&, Step& step) { ++slice_of(step)[i].index; });
    for (std::uint32_t b = 0; b < plan_.blocks.size(); ++b) {
      const Slice& slice = (is_source ? plan_.ranks[r][s].src : plan_.ranks[r][s].dst)[i];
      if (slice.space == Space::block && slice.index == b) continue;
      if (is_source && holds(r, s, b, slice)) continue;
      expect_found("name another block as" + side, r, s, [&](std::vector<Step>&, Step& step) {
        slice_of(step)[i] = {Space::block, b, 0, slice.bytes};
      });
    }
  }

  // Takes the signal out and lets everybody who waited for it wait for the one before.
  void mutate_signal(std::uint32_t r, std::size_t s) {
    const std::uint32_t value = plan_.ranks[r][s].value;
    expect_found("merge a signal with the one before", [&](Plan& plan) {
      auto& own = plan.ranks[r];
      own.erase(own.begin() + static_cast<std::ptrdiff_t>(s));
      --plan.signals[r];
      for (std::uint32_t q = 0; q < plan.ranks.size(); ++q) {
        for (Step& step : plan.ranks[q]) {
          const bool names = q == r ? step.kind == StepKind::signal
                                    : step.kind == StepKind::wait && step.rank == r;
          if (names && step.value >= value) --step.value;
        }
      }
    });
    expect_found("signal another value", r, s,
                 [](std::vector<Step>&, Step& step) { ++step.value; });
  }

  void mutate_wait(std::uint32_t r, std::size_t s) {
    const bool is_reuse = plan_.ranks[r][s].kind == StepKind::reuse;
    for (std::uint32_t q = 0; q < plan_.ranks.size(); ++q) {
      if (q == plan_.ranks[r][s].rank || (!is_reuse && implies(q, plan_.ranks[r][s]))) continue;
      expect_found("wait for another rank", r, s,
                   [&](std::vector<Step>&, Step& step) { step.rank = q; });
    }
    if (is_reuse) return;
    expect_found("wait for the signal before", r, s,
                 [](std::vector<Step>&, Step& step) { --step.value; });
    expect_found("wait for the end of an earlier pass instead", r, s,
                 [](std::vector<Step>&, Step& step) { step.kind = StepKind::reuse; });
  }

  void mutate_tables() {
    for (std::uint32_t b = 0; b < plan_.blocks.size(); ++b) {
      const std::string block = fmt::format(": block {}", b);
      expect_found("give a block to another rank" + block, [&](Plan& plan) {
        plan.blocks[b].writer = (plan.blocks[b].writer + 1) % key_.topology.ranks;
      });
      expect_found("put a block off its line" + block,
                   [&](Plan& plan) { plan.blocks[b].offset += 8; });
      expect_found("put a block outside of the half" + block, [&](Plan& plan) {
        plan.blocks[b].offset = plan.half_bytes[plan.blocks[b].device];
      });
      expect_found("put a block on a device that is not there" + block,
                   [&](Plan& plan) { plan.blocks[b].device = key_.topology.payload_devices; });
      expect_found("shorten a block" + block,
                   [&](Plan& plan) { plan.blocks[b].bytes -= key_.element_bytes; });
      for (std::uint32_t other = 0; other < b; ++other) {
        if (plan_.blocks[b].device != plan_.blocks[other].device) continue;
        expect_found("put a block over another" + block,
                     [&](Plan& plan) { plan.blocks[b].offset = plan.blocks[other].offset; });
      }
    }
    for (std::uint32_t r = 0; r < plan_.ranks.size(); ++r) {
      expect_found("count one signal more", [&](Plan& plan) { ++plan.signals[r]; });
    }
    expect_found("lose the steps of a rank", [](Plan& plan) { plan.ranks.pop_back(); });
    expect_found("lose a device", [](Plan& plan) { plan.half_bytes.pop_back(); });
  }

  PlanKey key_;
  Plan plan_;
};

std::map<std::string, int> Mutants::found;

TEST(PlanMutants, EachIsFound) {
  for_each_key({.ranks = {2, 3, 4},
                .devices = {2},
                .part_bytes = {100, 4096 + 8, 65536 + 24},
                .element_bytes = {4},
                .all_roots = false,
                .inlined = false},
               [](const PlanKey& key) {
                 // There the same bytes stand in several blocks, and it is all the same from which
                 // of them a rank takes them, and whom it waits for.
                 if (key.collective == Collective::broadcast && key.topology.is_grouped()) return;
                 Mutants(key).run();
               });
  for_each_key({.ranks = {3}, .devices = {6}, .part_bytes = {0}, .element_bytes = {1}},
               [](const PlanKey& key) {
                 if (key.collective == Collective::barrier) Mutants(key).run();
               });
  int total = 0;
  for (const auto& [what, count] : Mutants::found) {
    std::printf("%8d  %s\n", count, what.c_str());
    total += count;
  }
  std::printf("%8d  in all\n", total);
  EXPECT_EQ(Mutants::found.size(), 30u) << "kinds of mutation that occurred";
}

// Plans out of any bits: the checker says something or nothing, and looks at nothing outside.
TEST(PlanMutants, GarbageDoesNoHarm) {
  std::mt19937_64 random(11);
  std::vector<PlanKey> keys;
  for_each_key({.ranks = {1, 2, 3}, .devices = {2}, .part_bytes = {0, 100}, .element_bytes = {4}},
               [&](const PlanKey& key) { keys.push_back(key); });
  const auto number = [&]() -> std::uint64_t {
    constexpr std::uint64_t kEdges[] = {0, 1, 2, 3, 63, 64, 65, 100, 128, 1u << 31};
    const std::uint64_t draw = random() % 16;
    return draw < 10 ? kEdges[draw] : (draw < 13 ? ~std::uint64_t{0} - draw : random());
  };
  int broken = 0;
  for (int i = 0; i < 20000; ++i) {
    auto made = make_plan(keys[random() % keys.size()]);
    ASSERT_TRUE(made.ok());
    Plan plan = **made;
    for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      auto& steps = plan.ranks[random() % plan.ranks.size()];
      if (random() % 8 == 0) {
        plan.key.collective = static_cast<Collective>(number());
        plan.key.part_bytes = number();
      } else if (random() % 8 == 0) {
        plan.key.topology = {static_cast<std::uint32_t>(number()),
                             static_cast<std::uint32_t>(number())};
        plan.key.root = static_cast<std::uint32_t>(number());
      } else if (!plan.blocks.empty() && random() % 4 == 0) {
        plan.blocks[random() % plan.blocks.size()] = {static_cast<std::uint32_t>(random() % 4),
                                                      static_cast<std::uint32_t>(random() % 3),
                                                      number(), number()};
        plan.half_bytes[random() % plan.half_bytes.size()] = number();
      } else if (!steps.empty()) {
        Step& step = steps[random() % steps.size()];
        if (random() % 4 == 0) step.kind = static_cast<StepKind>(random() % 7);
        if (random() % 4 == 0) step.rank = static_cast<std::uint32_t>(number());
        if (random() % 4 == 0) step.value = static_cast<std::uint32_t>(number());
        auto& slices = random() % 2 == 0 ? step.src : step.dst;
        slices.resize(random() % 4);
        if (!slices.empty()) {
          slices[0] = {static_cast<Space>(random() % 4), static_cast<std::uint32_t>(number()),
                       number(), number()};
        }
      }
    }
    broken += check_plan(plan).empty() ? 0 : 1;
  }
  EXPECT_GT(broken, 10000);
}

}  // namespace
}  // namespace penstock
