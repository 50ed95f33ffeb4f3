// Follows a plan over all interleavings at once.
//
// The happens-before relation of a plan does not depend on how its ranks interleave: a rank's steps
// are ordered, and the v-th signal of a rank comes before every wait for it. So one run in any
// order that the waits allow, with a vector clock per rank, knows of every two steps whether they
// are ordered. Two accesses to a block of which one is a write must be; then all interleavings have
// the same contents, and the contents found in this one run are those of every run.
#include "penstock/comm/plan_checker.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "penstock/comm/plan_contents.h"
#include "penstock/comm/plan_findings.h"
#include "penstock/comm/plan_spaces.h"

namespace penstock {
namespace checker {
namespace {

struct Event {
  std::uint32_t rank = 0;
  std::uint32_t time =
      0;  // 0: never; else the number of a step of the rank, from 1, over all calls
};

// A segment of a block.
struct Stored {
  Content content;
  std::uint32_t call = 0;
  Event write;
  std::vector<Event> reads;  // since the write, the last of each rank
};

// A segment of a part of a rank's buffers.
struct Private {
  Content content;
  bool is_written = false;   // in this call
  Event write;               // in this call
  std::vector<Event> reads;  // by other ranks, through a block that mirrors it
};

struct Knowledge {
  std::vector<std::uint32_t> clock;  // by rank
  // Bit per rank: known, by steps of this call alone, to have finished the call before the previous
  // one. What earlier calls established does not count, since they may be of other plans.
  std::uint64_t finished = 0;
};

struct Piece {
  std::uint64_t begin;  // relative to the slice
  std::uint64_t end;
  Content content;
};

class Run {
 public:
  // exposed: blocks that mirror a buffer are that buffer wherever the plan allows it.
  Run(const Plan& plan, int calls, bool exposed, Findings& findings);
  void follow();

 private:
  struct Rank {
    std::uint32_t call = 0;
    std::size_t step = 0;
    std::uint32_t time = 0;
    Knowledge knowledge;
    std::vector<std::uint32_t> entered;             // by call: time of its first step
    std::vector<std::vector<Knowledge>> signalled;  // by call, by signal
    std::vector<Intervals<Private>> send;
    std::vector<Intervals<Private>> recv;  // unused where it is send
  };

  bool is_done(const Rank& rank) const { return rank.call >= calls_; }
  bool advance(std::uint32_t r);
  void enter(std::uint32_t r);
  void leave(std::uint32_t r);
  bool pass_wait(Rank& self, const Step& step);
  bool pass_arrivals(Rank& self, const Step& step);
  bool is_exposed(const Slice& slice) const;
  bool is_drained(std::uint32_t r) const;
  bool reads_of(std::uint32_t q, std::uint32_t r) const;
  void read_exposed(std::uint32_t r, std::size_t s, const Slice& slice, std::vector<Piece>* pieces);
  void move(std::uint32_t r, std::size_t s);
  Intervals<Private>& memory(std::uint32_t r, const Slice& slice);
  std::vector<Piece> read(std::uint32_t r, std::size_t s, const Slice& slice);
  void read_block(std::uint32_t r, std::size_t s, const Slice& slice, std::vector<Piece>* pieces);
  void write(std::uint32_t r, std::size_t s, const Slice& slice, const std::vector<Piece>& pieces);
  void write_block(std::uint32_t r, std::size_t s, const Slice& slice,
                   const std::vector<Piece>& pieces);
  std::vector<Piece> fold(std::uint32_t r, std::size_t s,
                          const std::vector<std::vector<Piece>>& sources, std::uint64_t bytes);
  bool fold_piece(std::uint32_t r, std::size_t s, const std::vector<const Piece*>& parts,
                  std::uint64_t begin, Content* content);
  void check_output(std::uint32_t r, std::uint32_t index);
  void check_unread();
  void report_deadlock();
  bool is_before(const Event& event, const Rank& rank) const {
    return event.time == 0 || rank.knowledge.clock[event.rank] >= event.time;
  }

  const Plan& plan_;
  const PlanKey& key_;
  const std::uint32_t calls_;
  const bool exposed_;
  Findings& findings_;
  Expressions expressions_;
  std::vector<Rank> ranks_;
  std::array<std::vector<Intervals<Stored>>, 2> halves_;
  // By call, by block: what the writer of an inlined block knew when it wrote it.
  std::vector<std::map<std::uint32_t, Knowledge>> arrived_;
};

Run::Run(const Plan& plan, int calls, bool exposed, Findings& findings)
    : plan_(plan),
      key_(plan.key),
      calls_(calls < 1 ? 1 : static_cast<std::uint32_t>(calls)),
      exposed_(exposed),
      findings_(findings),
      ranks_(plan.key.topology.ranks),
      arrived_(calls_) {
  for (auto& half : halves_) {
    half.resize(plan.blocks.size());
    for (std::size_t b = 0; b < half.size(); ++b) half[b].reset(plan.blocks[b].bytes, {});
  }
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.knowledge.clock.resize(ranks_.size());
    rank.signalled.resize(calls_);
    rank.send.resize(part_count(key_, Space::send, r));
    rank.recv.resize(part_count(key_, Space::recv, r));
    enter(r);
  }
}

void Run::follow() {
  bool moved = true;
  while (moved && !findings_.full()) {
    moved = false;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      while (!findings_.full() && advance(r)) moved = true;
    }
  }
  if (findings_.full()) return;
  for (const Rank& rank : ranks_) {
    if (!is_done(rank)) return report_deadlock();
  }
  check_unread();
}

// New buffers for a call: what they hold is named after it, so that nothing stale looks right.
void Run::enter(std::uint32_t r) {
  Rank& rank = ranks_[r];
  rank.knowledge.finished = std::uint64_t{1} << r;
  rank.entered.push_back(rank.time + 1);
  for (std::uint32_t part = 0; part < rank.send.size(); ++part) {
    rank.send[part].reset(key_.part_bytes, {expressions_.input(rank.call, r, part), false, {}, {}});
  }
  for (auto& part : rank.recv) part.reset(key_.part_bytes, {});
}

void Run::leave(std::uint32_t r) {
  Rank& rank = ranks_[r];
  for (std::uint32_t index = 0; index < rank.recv.size(); ++index) check_output(r, index);
  if (key_.collective == Collective::barrier) {
    for (std::uint32_t q = 0; q < ranks_.size(); ++q) {
      const Rank& other = ranks_[q];
      if (q == r) continue;
      if (other.entered.size() <= rank.call || rank.knowledge.clock[q] < other.entered[rank.call]) {
        findings_.add("rank {} may leave the barrier before rank {} enters it", r, q);
      }
    }
  }
  rank.step = 0;
  ++rank.call;
  if (!is_done(rank)) enter(r);
}

// Takes one step of the rank, if it can.
bool Run::advance(std::uint32_t r) {
  Rank& rank = ranks_[r];
  if (is_done(rank)) return false;
  const std::vector<Step>& steps = plan_.ranks[r];
  if (rank.step == steps.size()) {
    if (!is_drained(r)) return false;
    leave(r);
    return true;
  }
  const Step& step = steps[rank.step];
  const bool waits = step.kind == StepKind::wait || step.kind == StepKind::reuse;
  if (waits ? !pass_wait(rank, step) : !pass_arrivals(rank, step)) return false;
  rank.knowledge.clock[r] = ++rank.time;
  if (step.kind == StepKind::signal) {
    rank.signalled[rank.call].push_back(rank.knowledge);
  } else if (!waits) {
    move(r, rank.step);
  }
  ++rank.step;
  return true;
}

// Learns what the other rank knew when it signalled. False: it has not signalled yet.
bool Run::pass_wait(Rank& self, const Step& step) {
  const Rank& other = ranks_[step.rank];
  const std::uint64_t bit = std::uint64_t{1} << step.rank;
  const auto learn = [&self](const Knowledge& knowledge) {
    for (std::size_t q = 0; q < knowledge.clock.size(); ++q) {
      self.knowledge.clock[q] = std::max(self.knowledge.clock[q], knowledge.clock[q]);
    }
  };
  if (step.kind == StepKind::reuse) {
    if (self.call >= 2) {
      const std::uint32_t call = self.call - 2;
      if (other.signalled[call].size() < plan_.signals[step.rank]) return false;
      if (!other.signalled[call].empty()) learn(other.signalled[call].back());
    }
    self.knowledge.finished |= bit;
    return true;
  }
  const std::vector<Knowledge>& signals = other.signalled[self.call];
  if (signals.size() < step.value) return false;
  const Knowledge& knowledge = signals[step.value - 1];
  learn(knowledge);
  self.knowledge.finished |= knowledge.finished | bit;
  return true;
}

// Reading an inlined block waits for it. False: one is not there yet.
bool Run::pass_arrivals(Rank& self, const Step& step) {
  const auto& arrived = arrived_[self.call];
  for (const Slice& slice : step.src) {
    if (slice.space != Space::block || !plan_.blocks[slice.index].inlined) continue;
    if (arrived.count(slice.index) == 0) return false;
  }
  for (const Slice& slice : step.src) {
    if (slice.space != Space::block || !plan_.blocks[slice.index].inlined) continue;
    const Knowledge& knowledge = arrived.at(slice.index);
    for (std::size_t q = 0; q < knowledge.clock.size(); ++q) {
      self.knowledge.clock[q] = std::max(self.knowledge.clock[q], knowledge.clock[q]);
    }
    self.knowledge.finished |= knowledge.finished | std::uint64_t{1}
                                                        << plan_.blocks[slice.index].writer;
  }
  return true;
}

// Whoever exposes a buffer stays in the call until all that read it there are done.
bool Run::is_drained(std::uint32_t r) const {
  if (!exposed_) return true;
  for (std::uint32_t q = 0; q < ranks_.size(); ++q) {
    if (q == r || !reads_of(q, r)) continue;
    const Rank& reader = ranks_[q];
    const std::uint32_t call = ranks_[r].call;
    if (reader.signalled[call].size() < plan_.signals[q]) return false;
  }
  return true;
}

bool Run::reads_of(std::uint32_t q, std::uint32_t r) const {
  for (const Step& step : plan_.ranks[q]) {
    for (const Slice& slice : step.src) {
      if (is_exposed(slice) && plan_.blocks[slice.index].writer == r) return true;
    }
  }
  return false;
}

bool Run::is_exposed(const Slice& slice) const {
  if (!exposed_ || slice.space != Space::block) return false;
  const Block& block = plan_.blocks[slice.index];
  if (block.inlined || block.mirror.bytes == 0) return false;
  return block.mirror.space == Space::recv || plan_.may_expose_send;
}

void Run::move(std::uint32_t r, std::size_t s) {
  const Step& step = plan_.ranks[r][s];
  for (const Slice& slice : step.dst) {
    const Block* block = slice.space == Space::block ? &plan_.blocks[slice.index] : nullptr;
    if (block != nullptr && block->inlined)
      arrived_[ranks_[r].call][slice.index] = ranks_[r].knowledge;
  }
  std::vector<std::vector<Piece>> sources;
  for (const Slice& slice : step.src) sources.push_back(read(r, s, slice));
  const bool is_copy = step.kind == StepKind::copy;
  const std::vector<Piece> pieces =
      is_copy ? std::move(sources.front()) : fold(r, s, sources, step.src.front().bytes);
  for (const Slice& slice : step.dst) write(r, s, slice, pieces);
}

Intervals<Private>& Run::memory(std::uint32_t r, const Slice& slice) {
  if (slice.space == Space::send) return ranks_[r].send[slice.index];
  const std::int64_t part = aliased_send_part(key_, r, slice.index);
  return part < 0 ? ranks_[r].recv[slice.index] : ranks_[r].send[static_cast<std::size_t>(part)];
}

// Contents with positions relative to the slice.
std::vector<Piece> Run::read(std::uint32_t r, std::size_t s, const Slice& slice) {
  std::vector<Piece> pieces;
  if (is_exposed(slice)) {
    read_exposed(r, s, slice, &pieces);
  } else if (slice.space == Space::block) {
    read_block(r, s, slice, &pieces);
  } else {
    for (const auto& segment : memory(r, slice).cover(slice.offset, slice.offset + slice.bytes)) {
      if (slice.space == Space::send && segment.state.is_written) {
        findings_.add("{} reads byte {} of send after it was overwritten in place",
                      where(plan_, r, s), segment.begin);
      }
      pieces.push_back({segment.begin, segment.end, segment.state.content});
    }
  }
  for (Piece& piece : pieces) {
    piece.begin -= slice.offset;
    piece.end -= slice.offset;
    piece.content.shift += static_cast<std::int64_t>(slice.offset);
  }
  return pieces;
}

void Run::read_block(std::uint32_t r, std::size_t s, const Slice& slice,
                     std::vector<Piece>* pieces) {
  const Rank& rank = ranks_[r];
  Intervals<Stored>& block = halves_[rank.call % 2][slice.index];
  for (auto& segment : block.cover(slice.offset, slice.offset + slice.bytes)) {
    Stored& stored = segment.state;
    if (stored.write.time != 0 && stored.call > rank.call) {
      findings_.add("{} may find byte {} of block {} overwritten by a later call",
                    where(plan_, r, s), segment.begin, slice.index);
    } else if (stored.write.time == 0 || stored.call != rank.call) {
      findings_.add("{} may read byte {} of block {} before it is written in this call",
                    where(plan_, r, s), segment.begin, slice.index);
    } else if (!is_before(stored.write, rank)) {
      findings_.add("{} reads byte {} of block {} without a wait for the signal of rank {}",
                    where(plan_, r, s), segment.begin, slice.index, stored.write.rank);
    }
    std::erase_if(stored.reads, [r](const Event& event) { return event.rank == r; });
    stored.reads.push_back({r, rank.time});
    pieces->push_back({segment.begin, segment.end, stored.content});
  }
}

// Reads the buffer that the block mirrors, where it is: it must be ready, and stay until it is
// read.
void Run::read_exposed(std::uint32_t r, std::size_t s, const Slice& slice,
                       std::vector<Piece>* pieces) {
  const Block& block = plan_.blocks[slice.index];
  Rank& self = ranks_[r];
  Rank& writer = ranks_[block.writer];
  if (writer.call != self.call) {
    findings_.add("{} reads block {}, a buffer of rank {}, which is in another call",
                  where(plan_, r, s), slice.index, block.writer);
    pieces->push_back({slice.offset, slice.offset + slice.bytes, {}});
    return;
  }
  Slice of = block.mirror;
  of.offset += slice.offset;
  const bool is_result = of.space == Space::recv;
  for (auto& segment : memory(block.writer, of).cover(of.offset, of.offset + slice.bytes)) {
    Private& state = segment.state;
    if (state.is_written != is_result || !is_before(state.write, self)) {
      findings_.add("{} may find the buffer of rank {} behind block {} {}", where(plan_, r, s),
                    block.writer, slice.index,
                    is_result ? "before the result is there" : "overwritten in place");
    }
    state.reads.push_back({r, self.time});
    Content content = state.content;
    content.shift += static_cast<std::int64_t>(block.mirror.offset);
    pieces->push_back(
        {segment.begin - block.mirror.offset, segment.end - block.mirror.offset, content});
  }
}

void Run::write(std::uint32_t r, std::size_t s, const Slice& slice,
                const std::vector<Piece>& pieces) {
  if (is_exposed(slice)) return;
  if (slice.space == Space::block) return write_block(r, s, slice, pieces);
  Intervals<Private>& part = memory(r, slice);
  for (const Piece& piece : pieces) {
    for (auto& segment : part.cover(slice.offset + piece.begin, slice.offset + piece.end)) {
      if (segment.state.is_written) {
        findings_.add("{} writes byte {} of recv part {} a second time", where(plan_, r, s),
                      segment.begin, slice.index);
      }
      for (const Event& event : segment.state.reads) {
        if (is_before(event, ranks_[r])) continue;
        findings_.add("{} may overwrite byte {} of a buffer that rank {} still reads",
                      where(plan_, r, s), segment.begin, event.rank);
      }
      segment.state.is_written = true;
      segment.state.write = {r, ranks_[r].time};
      segment.state.content = piece.content;
      segment.state.content.shift -= static_cast<std::int64_t>(slice.offset);
    }
  }
}

void Run::write_block(std::uint32_t r, std::size_t s, const Slice& slice,
                      const std::vector<Piece>& pieces) {
  const Rank& rank = ranks_[r];
  for (std::uint32_t q = 0; q < ranks_.size(); ++q) {
    if ((rank.knowledge.finished >> q & 1) == 0) {
      findings_.add(
          "{} writes block {} before it knows that rank {} has finished the pass before the "
          "previous one",
          where(plan_, r, s), slice.index, q);
    }
  }
  Intervals<Stored>& block = halves_[rank.call % 2][slice.index];
  for (const Piece& piece : pieces) {
    for (auto& segment : block.cover(slice.offset + piece.begin, slice.offset + piece.end)) {
      Stored& stored = segment.state;
      if (stored.write.time != 0 && stored.call == rank.call) {
        findings_.add("{} writes byte {} of block {} a second time", where(plan_, r, s),
                      segment.begin, slice.index);
      }
      bool is_ordered = is_before(stored.write, rank);
      for (const Event& event : stored.reads) is_ordered &= is_before(event, rank);
      if (!is_ordered) {
        findings_.add("{} may write byte {} of block {} while it is still in use",
                      where(plan_, r, s), segment.begin, slice.index);
      }
      stored.content = piece.content;
      stored.content.shift -= static_cast<std::int64_t>(slice.offset);
      stored.call = rank.call;
      stored.write = {r, rank.time};
      stored.reads.clear();
    }
  }
}

// Cuts the sources at each other's boundaries and folds what lies side by side.
std::vector<Piece> Run::fold(std::uint32_t r, std::size_t s,
                             const std::vector<std::vector<Piece>>& sources, std::uint64_t bytes) {
  std::vector<Piece> result;
  std::vector<std::size_t> next(sources.size());
  for (std::uint64_t begin = 0; begin < bytes;) {
    std::uint64_t end = bytes;
    std::vector<const Piece*> parts;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      while (sources[i][next[i]].end <= begin) ++next[i];
      parts.push_back(&sources[i][next[i]]);
      end = std::min(end, parts.back()->end);
    }
    Content content;
    if (!fold_piece(r, s, parts, begin, &content)) content = {};
    result.push_back({begin, end, content});
    begin = end;
  }
  return result;
}

bool Run::fold_piece(std::uint32_t r, std::size_t s, const std::vector<const Piece*>& parts,
                     std::uint64_t begin, Content* content) {
  std::vector<Term> terms;
  const bool combines = plan_.ranks[r][s].combines;
  for (const Piece* piece : parts) {
    if (combines ? !expressions_.is_simple_fold(piece->content)
                 : !expressions_.is_input(piece->content)) {
      findings_.add("{} {} {}, which is no {}", where(plan_, r, s), combines ? "combines" : "folds",
                    expressions_.describe(piece->content, begin),
                    combines ? "fold of a group" : "input");
      return false;
    }
    Term term;
    if (combines) {
      term = expressions_.inner(piece->content, begin);
    } else {
      term = expressions_.terms(piece->content).front();
      term.offset += static_cast<std::int64_t>(begin) + piece->content.shift;
    }
    if (!terms.empty() && terms.back().rank >= term.rank) {
      findings_.add("{} folds rank {} after rank {}, which is not the order of ranks",
                    where(plan_, r, s), term.rank, terms.back().rank);
    }
    terms.push_back(term);
  }
  *content = expressions_.fold(std::move(terms), begin);
  return true;
}

void Run::check_output(std::uint32_t r, std::uint32_t index) {
  if (key_.part_bytes == 0) return;
  const std::uint32_t call = ranks_[r].call;
  const Definition definition = define_output(key_, r, index);
  Content expected = expressions_.input(call, definition.inputs[0].rank, definition.inputs[0].part);
  if (definition.is_fold) {
    std::vector<Term> groups;
    std::vector<Term> terms;
    for (const Input& input : definition.inputs) {
      terms.push_back({call, input.rank, input.part, 0, 0});
      if (definition.group == 0 || terms.size() < definition.group) continue;
      groups.push_back(expressions_.inner(expressions_.fold(std::move(terms), 0), 0));
      terms.clear();
    }
    expected = expressions_.fold(definition.group == 0 ? std::move(terms) : std::move(groups), 0);
  }
  for (const auto& segment : memory(r, {Space::recv, index, 0, 0}).segments()) {
    const Content& content = segment.state.content;
    if (content == expected) continue;
    if (!segment.state.is_written) {
      findings_.add("rank {} never writes bytes {}..{} of recv part {}", r, segment.begin,
                    segment.end - 1, index);
    } else {
      findings_.add("rank {} gets {} at byte {} of recv part {}, and {} is right", r,
                    expressions_.describe(content, segment.begin), segment.begin, index,
                    expressions_.describe(expected, segment.begin));
    }
  }
}

void Run::check_unread() {
  if (exposed_) return;
  for (const auto& half : halves_) {
    for (std::size_t b = 0; b < half.size(); ++b) {
      for (const auto& segment : half[b].segments()) {
        if (!segment.state.reads.empty()) continue;
        if (segment.state.write.time == 0 && calls_ == 1 && &half == &halves_[1]) continue;
        findings_.add("nobody {} bytes {}..{} of block {}",
                      segment.state.write.time == 0 ? "writes" : "reads", segment.begin,
                      segment.end - 1, b);
      }
    }
  }
}

void Run::report_deadlock() {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    if (is_done(rank)) continue;
    if (rank.step == plan_.ranks[r].size()) {
      findings_.add("rank {} waits for the readers of its buffers for ever", r);
      continue;
    }
    const Step& step = plan_.ranks[r][rank.step];
    if (step.kind == StepKind::copy || step.kind == StepKind::reduce) {
      findings_.add("{} waits for an inlined block for ever", where(plan_, r, rank.step));
      continue;
    }
    findings_.add("{} waits for {} of rank {} for ever", where(plan_, r, rank.step),
                  step.kind == StepKind::reuse ? std::string("the end of an earlier pass")
                                               : fmt::format("signal {}", step.value),
                  step.rank);
  }
}

}  // namespace

void check_run(const Plan& plan, int calls, Findings& findings) {
  Run(plan, calls, false, findings).follow();
  const bool mirrors = std::any_of(plan.blocks.begin(), plan.blocks.end(), [](const Block& block) {
    return block.mirror.bytes > 0 && !block.inlined;
  });
  if (mirrors && findings.empty()) Run(plan, calls, true, findings).follow();
}

}  // namespace checker

std::vector<std::string> check_plan(const Plan& plan, int calls, std::size_t limit) {
  checker::Findings findings(limit);
  checker::check_structure(plan, findings);
  if (findings.empty()) checker::check_run(plan, calls, findings);
  return findings.take();
}

}  // namespace penstock
