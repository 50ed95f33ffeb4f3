// Executes plans over plain bytes, in one thread, with the ranks interleaved at random and moves
// torn in the middle, and compares with the collectives' definition written out here. Nothing of
// the plan checker is used. The fold is h(a, b) = 31 a + 7 b + 1 on bytes: neither commutative nor
// associative, so that any other order or grouping shows.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>

#include "penstock/comm/plan_keys_test.h"

namespace penstock {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint8_t fold(std::uint8_t a, std::uint8_t b) {
  return static_cast<std::uint8_t>(31 * a + 7 * b + 1);
}

// Byte x of what `rank` has for part `part` in pass `pass`.
std::uint8_t input(std::uint32_t pass, std::uint32_t rank, std::uint32_t part, std::uint64_t x) {
  std::uint64_t v = x + 1000003ull * rank + 19260817ull * part + 998244353ull * pass;
  v = (v ^ (v >> 7)) * 0x9e3779b97f4a7c15ull;
  return static_cast<std::uint8_t>(v >> 56);
}

// What byte x of part `part` of recv at `rank` must be; nothing if the rank receives nothing.
std::optional<std::uint8_t> expected(const PlanKey& key, std::uint32_t pass, std::uint32_t rank,
                                     std::uint32_t part, std::uint64_t x) {
  const auto folded = [&](std::uint32_t of_part) {
    const std::uint32_t n = key.topology.ranks;
    const std::uint32_t group = key.topology.is_grouped() ? key.topology.group : n;
    std::uint8_t value = 0;
    for (std::uint32_t first = 0; first < n; first += group) {
      std::uint8_t of_group = input(pass, first, of_part, x);
      for (std::uint32_t q = first + 1; q < first + group; ++q) {
        of_group = fold(of_group, input(pass, q, of_part, x));
      }
      value = first == 0 ? of_group : fold(value, of_group);
    }
    return value;
  };
  const bool is_root = rank == key.root;
  switch (key.collective) {
    case Collective::all_reduce:
      return folded(0);
    case Collective::reduce:
      return is_root ? std::optional(folded(0)) : std::nullopt;
    case Collective::reduce_scatter:
      return folded(rank);
    case Collective::broadcast:
      return input(pass, key.root, 0, x);
    case Collective::all_gather:
      return input(pass, part, 0, x);
    case Collective::gather:
      return is_root ? std::optional(input(pass, part, 0, x)) : std::nullopt;
    case Collective::scatter:
      return input(pass, key.root, rank, x);
    case Collective::all_to_all:
      return input(pass, part, rank, x);
    case Collective::send_recv:
      return rank + 1 == key.topology.ranks ? std::optional(input(pass, 0, 0, x)) : std::nullopt;
    case Collective::barrier:
      break;
  }
  return std::nullopt;
}

bool many_parts(Collective collective, bool send) {
  return collective == Collective::all_to_all ||
         (send ? collective == Collective::reduce_scatter || collective == Collective::scatter
               : collective == Collective::all_gather || collective == Collective::gather);
}

// The buffers of one rank in one pass. In place the smaller one lies inside of the larger one.
struct Buffers {
  Bytes memory;
  std::uint64_t send = 0;  // offsets into memory
  std::uint64_t recv = 0;
  std::uint64_t send_bytes = 0;
  std::uint64_t recv_bytes = 0;
};

constexpr std::uint8_t kGuard = 0xa5;
constexpr std::uint64_t kGuardBytes = 16;

Buffers make_buffers(const PlanKey& key, std::uint32_t pass, std::uint32_t rank) {
  Buffers buffers;
  const std::uint64_t part = key.part_bytes;
  const std::uint32_t n = key.topology.ranks;
  const std::uint32_t send_parts = many_parts(key.collective, true) ? n : 1;
  const std::uint32_t recv_parts = many_parts(key.collective, false) ? n : 1;
  buffers.send_bytes = send_parts * part;
  buffers.recv_bytes = recv_parts * part;
  buffers.send = kGuardBytes;
  buffers.recv = kGuardBytes;
  if (!key.in_place) {
    buffers.recv += buffers.send_bytes + kGuardBytes;
  } else if (send_parts > recv_parts) {
    buffers.recv += rank * part;
  } else if (send_parts < recv_parts) {
    buffers.send += rank * part;
  }
  const std::uint64_t end =
      std::max(buffers.send + buffers.send_bytes, buffers.recv + buffers.recv_bytes);
  buffers.memory.assign(end + kGuardBytes, kGuard);
  // Data that nobody may look at where a rank has no send buffer.
  const bool has_send =
      key.collective == Collective::send_recv ? rank == 0
      : key.collective == Collective::broadcast || key.collective == Collective::scatter
          ? rank == key.root
          : true;
  for (std::uint32_t p = 0; p < send_parts && has_send; ++p) {
    for (std::uint64_t x = 0; x < part; ++x) {
      buffers.memory[buffers.send + p * part + x] = input(pass, rank, p, x);
    }
  }
  return buffers;
}

// Passes of any plans of one topology, one after another on the same scratch memory.
class Execution {
 public:
  Execution(std::vector<Plan> plans, unsigned seed)
      : plans_(std::move(plans)), random_(seed), ranks_(plans_[0].key.topology.ranks) {
    std::vector<std::uint64_t> half(plans_[0].half_bytes.size());
    for (const Plan& plan : plans_) {
      for (std::size_t d = 0; d < half.size(); ++d) half[d] = std::max(half[d], plan.half_bytes[d]);
    }
    for (Bytes& bytes : scratch_[0]) bytes.clear();
    for (auto& devices : scratch_) {
      for (const std::uint64_t bytes : half) {
        devices.emplace_back(bytes);
        for (std::uint8_t& byte : devices.back()) byte = static_cast<std::uint8_t>(random_());
      }
    }
    // base_[p][r]: fence of rank r at the start of pass p.
    base_.assign(plans_.size() + 1, std::vector<std::uint64_t>(ranks_.size()));
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
        base_[p + 1][r] = base_[p][r] + plans_[p].signals[r];
        ranks_[r].buffers.push_back(make_buffers(plans_[p].key, static_cast<std::uint32_t>(p), r));
      }
    }
  }

  // Empty, or what is wrong.
  std::string run() {
    std::vector<std::uint32_t> able;
    while (true) {
      able.clear();
      bool all_done = true;
      for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
        if (ranks_[r].pass == plans_.size()) continue;
        all_done = false;
        if (can_move(r)) able.push_back(r);
      }
      if (all_done) break;
      if (able.empty()) return "deadlock";
      const std::uint32_t r = able[random_() % able.size()];
      // Sometimes a rank runs far ahead of the others.
      for (std::uint32_t turns = random_() % 8 == 0 ? 64 : 1; turns > 0 && can_move(r); --turns) {
        turn(r);
      }
    }
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
        std::string wrong = check(static_cast<std::uint32_t>(p), r);
        if (!wrong.empty()) return wrong;
      }
    }
    return {};
  }

 private:
  struct Rank {
    std::size_t pass = 0;
    std::size_t step = 0;
    std::uint64_t moved = 0;  // bytes of the step that are moved already
    std::uint64_t fence = 0;
    std::vector<Buffers> buffers;  // by pass
  };

  bool can_move(std::uint32_t r) const {
    const Rank& rank = ranks_[r];
    if (rank.pass == plans_.size()) return false;
    const std::vector<Step>& steps = plans_[rank.pass].ranks[r];
    if (rank.step == steps.size()) return true;
    const Step& step = steps[rank.step];
    if (step.kind == StepKind::wait) {
      return ranks_[step.rank].fence >= base_[rank.pass][step.rank] + step.value;
    }
    if (step.kind == StepKind::reuse) {
      return rank.pass < 2 || ranks_[step.rank].fence >= base_[rank.pass - 1][step.rank];
    }
    return true;
  }

  void turn(std::uint32_t r) {
    Rank& rank = ranks_[r];
    const std::vector<Step>& steps = plans_[rank.pass].ranks[r];
    if (rank.step == steps.size()) {
      ++rank.pass;
      rank.step = 0;
      return;
    }
    const Step& step = steps[rank.step];
    if (step.kind == StepKind::signal) rank.fence = base_[rank.pass][r] + step.value;
    if (step.kind == StepKind::copy || step.kind == StepKind::reduce) {
      // Torn: a part of the bytes now, the rest later.
      const std::uint64_t left = step.src[0].bytes - rank.moved;
      const std::uint64_t bytes = random_() % 2 == 0 ? left : left / 2;
      move(r, step, rank.moved, rank.moved + bytes);
      rank.moved += bytes;
      if (rank.moved < step.src[0].bytes) return;
      rank.moved = 0;
    }
    ++rank.step;
  }

  std::uint8_t* at(std::uint32_t r, const Slice& slice) {
    Rank& rank = ranks_[r];
    const Plan& plan = plans_[rank.pass];
    if (slice.space == Space::block) {
      const Block& block = plan.blocks[slice.index];
      return scratch_[rank.pass % 2][block.device].data() + block.offset + slice.offset;
    }
    Buffers& buffers = rank.buffers[rank.pass];
    return buffers.memory.data() + (slice.space == Space::send ? buffers.send : buffers.recv) +
           slice.index * plan.key.part_bytes + slice.offset;
  }

  void move(std::uint32_t r, const Step& step, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t x = begin; x < end; ++x) {
      std::uint8_t value = at(r, step.src[0])[x];
      for (std::size_t i = 1; i < step.src.size(); ++i) value = fold(value, at(r, step.src[i])[x]);
      for (const Slice& dst : step.dst) at(r, dst)[x] = value;
    }
  }

  // The buffer as it was, with what the rank receives written over it.
  std::string check(std::uint32_t pass, std::uint32_t r) const {
    const PlanKey& key = plans_[pass].key;
    Buffers right = make_buffers(key, pass, r);
    for (std::uint64_t i = 0; i < right.recv_bytes; ++i) {
      const auto part = static_cast<std::uint32_t>(i / key.part_bytes);
      const auto value = expected(key, pass, r, part, i % key.part_bytes);
      if (value) right.memory[right.recv + i] = *value;
    }
    const Bytes& memory = ranks_[r].buffers[pass].memory;
    for (std::uint64_t i = 0; i < memory.size(); ++i) {
      if (memory[i] == right.memory[i]) continue;
      return fmt::format("pass {} rank {}: byte {} (send at {}, recv at {}) is {}, right is {}",
                         pass, r, i, right.send, right.recv, memory[i], right.memory[i]);
    }
    return {};
  }

  std::vector<Plan> plans_;
  std::mt19937 random_;
  std::vector<Rank> ranks_;
  std::array<std::vector<Bytes>, 2> scratch_;
  std::vector<std::vector<std::uint64_t>> base_;
};

Plan plan_of(const PlanKey& key) {
  auto made = make_plan(key);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? **made : Plan{};
}

TEST(PlanInterleaving, EveryPlanThreeTimes) {
  unsigned seed = 1;
  const auto run = [&seed](const PlanKey& key) {
    const Plan plan = plan_of(key);
    ASSERT_EQ(Execution({plan, plan, plan}, ++seed).run(), "") << key_text(key) << " seed " << seed;
  };
  for_each_key({.ranks = {1, 2, 3, 4, 5, 8},
                .devices = {1, 4},
                .part_bytes = {0, 1, 63, 65, 100, 777},
                .element_bytes = {1},
                .inlined = false},
               run);
  for_each_key({.ranks = {2, 3}, .devices = {6}, .part_bytes = {65536 + 24}, .element_bytes = {8}},
               run);
}

// A comm runs whatever plans its calls need on the same two halves.
TEST(PlanInterleaving, MixedPlans) {
  std::mt19937 random(7);
  for (const std::uint32_t ranks : {2u, 3u, 5u}) {
    std::vector<PlanKey> keys;
    for_each_key({.ranks = {ranks},
                  .devices = {3},
                  .part_bytes = {0, 8, 200, 1000},
                  .element_bytes = {8},
                  .all_roots = true,
                  .inlined = false},
                 [&](const PlanKey& key) { keys.push_back(key); });
    for (unsigned seed = 0; seed < 150; ++seed) {
      std::vector<Plan> plans;
      std::string names;
      for (int i = 0; i < 8; ++i) {
        const PlanKey& key = keys[random() % keys.size()];
        plans.push_back(plan_of(key));
        names += key_text(key) + "\n";
      }
      ASSERT_EQ(Execution(std::move(plans), seed).run(), "") << names << "seed " << seed;
    }
  }
}

// Ranks find out for themselves whether they are in place: plans that differ in nothing else have
// the same blocks and signals, so that any mixture of them is right.
TEST(PlanInterleaving, RanksMayDisagreeAboutInPlace) {
  for_each_key(
      {.ranks = {1, 2, 4}, .devices = {2}, .part_bytes = {0, 100, 70000}, .element_bytes = {4}},
      [](PlanKey key) {
        const Plan plan = plan_of(key);
        key.in_place = !key.in_place;
        const Plan other = plan_of(key);
        EXPECT_EQ(plan.signals, other.signals) << key_text(key);
        EXPECT_EQ(plan.half_bytes, other.half_bytes) << key_text(key);
        ASSERT_EQ(plan.blocks.size(), other.blocks.size()) << key_text(key);
        for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
          EXPECT_EQ(plan.blocks[b].offset, other.blocks[b].offset) << key_text(key);
          EXPECT_EQ(plan.blocks[b].device, other.blocks[b].device) << key_text(key);
        }
      });
}

// The executor itself: some interleaving shows that a wait, a reuse or a signal is missing. In an
// all-reduce every pass proves that the one before is over, so that only a rooted collective misses
// its reuse.
TEST(PlanInterleaving, ShowsWhatIsMissing) {
  const auto shows = [&](const PlanKey& key, StepKind kind) {
    const Plan good = plan_of(key);
    Plan broken = good;
    std::erase_if(broken.ranks[1], [kind](const Step& step) { return step.kind == kind; });
    for (unsigned seed = 0; seed < 300; ++seed) {
      EXPECT_EQ(Execution({good, good, good, good}, seed).run(), "");
      if (!Execution({broken, broken, broken, broken}, seed).run().empty()) return true;
    }
    return false;
  };
  const PlanKey all_reduce{Collective::all_reduce, {3, 2}, 0, 1, 300, false, "two_phase"};
  const PlanKey broadcast{Collective::broadcast, {3, 2}, 1, 1, 300, false, "direct"};
  EXPECT_TRUE(shows(all_reduce, StepKind::wait));
  EXPECT_TRUE(shows(all_reduce, StepKind::signal));
  EXPECT_TRUE(shows(broadcast, StepKind::reuse));
}

}  // namespace
}  // namespace penstock
