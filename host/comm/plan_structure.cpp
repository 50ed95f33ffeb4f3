#include <algorithm>

#include "penstock/comm/plan_findings.h"
#include "penstock/comm/plan_spaces.h"
#include "penstock/descriptor/address.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/memory/inline_block.h"

namespace penstock::checker {
namespace {

constexpr std::uint64_t kLine = PENSTOCK_CACHE_LINE;

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

class Structure {
 public:
  Structure(const Plan& plan, Findings& findings)
      : plan_(plan), key_(plan.key), findings_(findings) {}

  void check() {
    if (!check_shape()) return;
    check_blocks();
    for (std::uint32_t rank = 0; rank < key_.topology.ranks && !findings_.full(); ++rank) {
      check_rank(rank);
    }
  }

 private:
  // False: the tables have wrong sizes, so that nothing else can be looked at.
  bool check_shape() {
    const Topology& topology = key_.topology;
    if (topology.ranks < 1 || topology.ranks > kMaxRanks || topology.payload_devices < 1 ||
        topology.payload_devices > PENSTOCK_MAX_DEVICES) {
      findings_.add("the topology has {} ranks (1..{} are possible) and {} payload devices (1..{})",
                    topology.ranks, kMaxRanks, topology.payload_devices, PENSTOCK_MAX_DEVICES);
    } else if (plan_.ranks.size() != topology.ranks || plan_.signals.size() != topology.ranks ||
               plan_.half_bytes.size() != topology.payload_devices) {
      findings_.add(
          "the plan has steps of {} ranks, signals of {} and sizes of {} devices; the topology has "
          "{} ranks and {} devices",
          plan_.ranks.size(), plan_.signals.size(), plan_.half_bytes.size(), topology.ranks,
          topology.payload_devices);
    } else if (key_.element_bytes == 0 || key_.part_bytes % key_.element_bytes != 0 ||
               key_.part_bytes > kMaxPartBytes) {
      findings_.add("a part of {} bytes does not consist of elements of {} bytes", key_.part_bytes,
                    key_.element_bytes);
    }
    return findings_.empty();
  }

  void check_blocks() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t b = 0; b < plan_.blocks.size(); ++b) {
      const Block& block = plan_.blocks[b];
      if (block.writer >= key_.topology.ranks || block.device >= key_.topology.payload_devices) {
        findings_.add("block {} belongs to rank {} of {} on device {} of {}", b, block.writer,
                      key_.topology.ranks, block.device, key_.topology.payload_devices);
        continue;
      }
      if (block.offset % kLine != 0) {
        findings_.add("block {} is at offset {}, no multiple of {}", b, block.offset, kLine);
      }
      const std::uint64_t half =
          block.inlined ? key_.inline_lines * kLine : plan_.half_bytes[block.device];
      if (block.inlined != plan_.is_inlined()) {
        findings_.add("block {} is {}inlined, and others are not so", b,
                      block.inlined ? "" : "not ");
      }
      check_mirror(b);
      if (block.bytes == 0 || block.bytes > half || block.offset > half ||
          occupied(block) > half - block.offset) {
        findings_.add("block {} of {} bytes at offset {} does not fit into the {} of device {}", b,
                      block.bytes, block.offset, half, block.device);
      }
      order.push_back(b);
    }
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const Block& left = plan_.blocks[a];
      const Block& right = plan_.blocks[b];
      return std::pair(home(left), left.offset) < std::pair(home(right), right.offset);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Block& before = plan_.blocks[order[i - 1]];
      const Block& block = plan_.blocks[order[i]];
      if (home(before) == home(block) && before.offset + occupied(before) > block.offset) {
        findings_.add("blocks {} and {} overlap at offset {} of device {}", order[i - 1], order[i],
                      block.offset, block.device);
      }
    }
  }

  static std::uint64_t occupied(const Block& block) {
    return block.inlined ? inline_lines(block.bytes) * kLine : round_up(block.bytes);
  }
  // Blocks of one home must not overlap.
  static std::uint32_t home(const Block& block) {
    return block.inlined ? block.writer : block.device;
  }

  void check_mirror(std::uint32_t b) {
    const Block& block = plan_.blocks[b];
    const Slice& mirror = block.mirror;
    if (mirror.bytes == 0) return;
    const std::uint32_t parts =
        mirror.space == Space::block ? 0 : part_count(key_, mirror.space, block.writer);
    if (mirror.bytes != block.bytes || mirror.index >= parts || mirror.bytes > key_.part_bytes ||
        mirror.offset > key_.part_bytes - mirror.bytes) {
      findings_.add("block {} of {} bytes mirrors {} bytes at {} of part {}, of which there are {}",
                    b, block.bytes, mirror.bytes, mirror.offset, mirror.index, parts);
    }
  }

  void check_rank(std::uint32_t rank) {
    const std::vector<Step>& steps = plan_.ranks[rank];
    std::uint32_t signals = 0;
    std::int64_t unsignalled = -1;  // a step that touches a block after the last signal
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const Step& step = steps[s];
      const bool moves = step.kind == StepKind::copy || step.kind == StepKind::reduce;
      if (step.kind > StepKind::reuse) {
        findings_.add("{} is of kind {}, which there is not", where(plan_, rank, s),
                      static_cast<int>(step.kind));
      }
      if (moves) {
        if (check_move(rank, s)) unsignalled = static_cast<std::int64_t>(s);
      } else if (!step.src.empty() || !step.dst.empty()) {
        findings_.add("{} names bytes, and moves none", where(plan_, rank, s));
      }
      if (step.kind == StepKind::signal) {
        unsignalled = -1;
        if (step.value != ++signals) {
          findings_.add("{} is signal {} of the rank and has value {}", where(plan_, rank, s),
                        signals, step.value);
        }
      } else if (!moves) {
        check_wait(rank, s);
      }
    }
    if (signals != plan_.signals[rank]) {
      findings_.add("rank {} signals {} times, and the plan says {}", rank, signals,
                    plan_.signals[rank]);
    }
    if (unsignalled >= 0) {
      findings_.add("{} touches a block, and no signal follows: nobody can know when it is done",
                    where(plan_, rank, static_cast<std::size_t>(unsignalled)));
    }
  }

  void check_wait(std::uint32_t rank, std::size_t s) {
    const Step& step = plan_.ranks[rank][s];
    if (step.rank >= key_.topology.ranks || step.rank == rank) {
      findings_.add("{} waits for rank {}; others are those below {} but {}", where(plan_, rank, s),
                    step.rank, key_.topology.ranks, rank);
    } else if (step.kind == StepKind::wait &&
               (step.value == 0 || step.value > plan_.signals[step.rank])) {
      findings_.add("{} waits for signal {} of rank {}, which has {} in this pass",
                    where(plan_, rank, s), step.value, step.rank, plan_.signals[step.rank]);
    }
  }

  // True if the step touches a block.
  bool check_move(std::uint32_t rank, std::size_t s) {
    const Step& step = plan_.ranks[rank][s];
    const bool is_copy = step.kind == StepKind::copy;
    const std::size_t most_sources = is_copy ? 1 : kMaxRanks;
    if (step.src.empty() || step.src.size() > most_sources || step.dst.empty() ||
        step.dst.size() > PENSTOCK_MAX_DESTINATIONS) {
      findings_.add("{} has {} sources (1..{} are possible) and {} destinations (1..{})",
                    where(plan_, rank, s), step.src.size(), most_sources, step.dst.size(),
                    PENSTOCK_MAX_DESTINATIONS);
      return false;
    }
    bool touches_block = false;
    const std::uint64_t bytes = step.src.front().bytes;
    for (const bool is_source : {true, false}) {
      for (const Slice& slice : is_source ? step.src : step.dst) {
        touches_block |= slice.space == Space::block;
        if (slice.bytes != bytes) {
          findings_.add("{} moves {} bytes from its first source and names {} bytes elsewhere",
                        where(plan_, rank, s), bytes, slice.bytes);
        }
        check_slice(rank, s, slice, is_source);
      }
    }
    check_overlap(rank, s);
    return touches_block;
  }

  void check_slice(std::uint32_t rank, std::size_t s, const Slice& slice, bool is_source) {
    std::uint64_t size = key_.part_bytes;
    if (slice.space == Space::block) {
      if (slice.index >= plan_.blocks.size()) {
        findings_.add("{} names block {} of {}", where(plan_, rank, s), slice.index,
                      plan_.blocks.size());
        return;
      }
      const Block& block = plan_.blocks[slice.index];
      size = block.bytes;
      if (!is_source && block.writer != rank) {
        findings_.add("{} writes block {}, which belongs to rank {}", where(plan_, rank, s),
                      slice.index, block.writer);
      }
    } else if (slice.space > Space::block) {
      findings_.add("{} names space {}, which there is not", where(plan_, rank, s),
                    static_cast<int>(slice.space));
    } else {
      const char* name = slice.space == Space::send ? "send" : "recv";
      const std::uint32_t parts = part_count(key_, slice.space, rank);
      if (slice.index >= parts) {
        findings_.add("{} names part {} of {}, which has {} parts at this rank",
                      where(plan_, rank, s), slice.index, name, parts);
      } else if (!is_source && slice.space == Space::send) {
        findings_.add("{} writes the send buffer", where(plan_, rank, s));
      }
    }
    if (slice.bytes == 0 || slice.bytes > size || slice.offset > size - slice.bytes) {
      findings_.add("{} names {} bytes at offset {} of {} bytes", where(plan_, rank, s),
                    slice.bytes, slice.offset, size);
    }
    if (slice.bytes % key_.element_bytes != 0 || slice.offset % key_.element_bytes != 0) {
      findings_.add("{} cuts an element of {} bytes: {} bytes at offset {}", where(plan_, rank, s),
                    key_.element_bytes, slice.bytes, slice.offset);
    }
  }

  // A destination is a source exactly, or overlaps none, and no other destination.
  void check_overlap(std::uint32_t rank, std::size_t s) {
    const Step& step = plan_.ranks[rank][s];
    const auto memory = [&](Slice slice) {
      if (slice.space != Space::recv) return slice;
      const std::int64_t part = aliased_send_part(key_, rank, slice.index);
      if (part >= 0)
        slice = {Space::send, static_cast<std::uint32_t>(part), slice.offset, slice.bytes};
      return slice;
    };
    const auto overlap = [](const Slice& a, const Slice& b) {
      return a.space == b.space && a.index == b.index && a.offset < b.offset + b.bytes &&
             b.offset < a.offset + a.bytes;
    };
    for (std::size_t d = 0; d < step.dst.size(); ++d) {
      const Slice dst = memory(step.dst[d]);
      bool wrong = false;
      for (const Slice& src : step.src) {
        const Slice source = memory(src);
        wrong |= overlap(dst, source) && !(dst == source);
      }
      for (std::size_t other = 0; other < d; ++other) {
        wrong |= overlap(dst, memory(step.dst[other]));
      }
      if (wrong) findings_.add("{} has destinations that overlap", where(plan_, rank, s));
    }
  }

  const Plan& plan_;
  const PlanKey& key_;
  Findings& findings_;
};

}  // namespace

std::string where(const Plan& plan, std::uint32_t rank, std::size_t step) {
  return fmt::format("rank {} step {} ({})", rank, step,
                     step_kind_name(plan.ranks[rank][step].kind));
}

void check_structure(const Plan& plan, Findings& findings) { Structure(plan, findings).check(); }

}  // namespace penstock::checker
