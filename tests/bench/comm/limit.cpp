#include "limit.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "control.h"

namespace penstock::bench {
namespace {

constexpr std::size_t kMaxStaged = std::size_t{1} << 20;
constexpr std::size_t kMinStream = std::size_t{1} << 20;
constexpr std::size_t kSmallSlot = std::size_t{16} << 10;  // up to which slots are kDepth deep

bool is_fold(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

}  // namespace

LimitPeer::LimitPeer(LimitShared& shared, std::byte* memory, std::size_t buffer_bytes,
                     std::uint32_t rank, std::uint32_t ranks, const LimitLoops& loops, bool yields)
    : shared_(shared),
      memory_(memory),
      bytes_(buffer_bytes),
      rank_(rank),
      ranks_(ranks),
      loops_(loops),
      yields_(yields) {}

void* LimitPeer::allocate(Buffer buffer, std::size_t bytes) {
  std::byte* const data = buffer == Buffer::send ? send_of(rank_) : recv_of(rank_);
  std::memset(data, 0, bytes);
  return data;
}

std::byte* LimitPeer::input_of(std::uint32_t rank) const {
  return problem_.collective == Collective::broadcast ? recv_of(rank) : send_of(rank);
}

std::byte* LimitPeer::slot_of(std::uint32_t rank) const {
  const std::size_t payload = std::max<std::size_t>(problem_.send_bytes(0), part_);
  const bool small = payload <= kSmallSlot;
  const std::size_t depth = small ? LimitShared::kDepth : 2;
  const std::size_t stride = small ? kSmallSlot : (payload + 4095) / 4096 * 4096;
  return memory_ + (2 * ranks_ + rank) * bytes_ + (call_ % depth) * stride;
}

template <typename Ready>
void LimitPeer::wait(const Ready& ready) const {
  while (!ready()) {
    if (yields_) {
      ::sched_yield();
    } else {
      pause_cpu();
    }
  }
}

void LimitPeer::wait_entered(std::uint32_t rank) const {
  wait([&] { return shared_.entered[rank].value.load(std::memory_order_acquire) >= call_; });
}
void LimitPeer::wait_all_entered() const {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) wait_entered(rank);
  }
}
void LimitPeer::wait_finished(std::uint32_t rank, std::uint64_t call) const {
  wait([&] { return shared_.finished[rank].value.load(std::memory_order_acquire) >= call; });
}
void LimitPeer::wait_all_finished() const {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) wait_finished(rank, call_);
  }
}

void LimitPeer::wait_reusable(std::uint64_t depth) {
  if (call_ <= depth || reusable_ >= call_ - depth) return;
  // The line of a flag that is looked at every time would have to come over every time.
  std::uint64_t least = call_;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    wait_finished(rank, call_ - depth);
    least = std::min(least, shared_.finished[rank].value.load(std::memory_order_acquire));
  }
  reusable_ = least;
}

void LimitPeer::plan_moves() {
  moves_.clear();
  const auto add = [this](std::uint32_t source, std::uint32_t reader, std::uint32_t channel,
                          std::size_t from, std::size_t to) {
    moves_.push_back({source, reader, channel, from, to});
  };
  for (std::uint32_t a = 0; a < ranks_; ++a) {
    for (std::uint32_t step = 0; step < ranks_; ++step) {
      const std::uint32_t b = (a + step) % ranks_;  // readers start at different sources
      switch (problem_.collective) {
        case Collective::all_gather:
          add(b, a, 0, 0, b * part_);
          break;
        case Collective::all_to_all:
          add(b, a, a, a * part_, b * part_);
          break;
        case Collective::broadcast:
          if (step == 0 && a != 0) add(0, a, 0, 0, 0);
          break;
        case Collective::gather:
          if (a == 0) add(b, 0, 0, 0, b * part_);
          break;
        case Collective::scatter:
          if (step == 0) add(0, a, a, a * part_, 0);
          break;
        case Collective::send_recv:
          if (step == 0 && a % 2 == 1) add(a - 1, a, 0, 0, 0);
          break;
        default:
          break;
      }
    }
  }
}

void LimitPeer::add_variants(bool folds) {
  const bool large = part_ >= kMinStream && part_ % 64 == 0;
  if (part_ <= LimitShared::kSmallBytes) {
    variants_.push_back({"lines", folds ? &LimitPeer::fold_lines : &LimitPeer::move_lines});
  }
  const std::size_t slot_bytes = std::max<std::size_t>(problem_.send_bytes(0), part_);
  if (slot_bytes <= kMaxStaged) {
    variants_.push_back({"staged", folds ? &LimitPeer::fold_staged : &LimitPeer::move_staged});
  }
  if (folds) {
    variants_.push_back({"direct", &LimitPeer::fold_direct<false>});
    if (large) variants_.push_back({"direct+nt", &LimitPeer::fold_direct<true>});
    if (problem_.collective == Collective::reduce_scatter || part_ < 1024) return;
    variants_.push_back({"sharded", &LimitPeer::fold_sharded<false>});
    if (large) variants_.push_back({"sharded+nt", &LimitPeer::fold_sharded<true>});
    return;
  }
  variants_.push_back({"pull", &LimitPeer::move_pull<false>});
  variants_.push_back({"push", &LimitPeer::move_push<false>});
  if (large) variants_.push_back({"pull+nt", &LimitPeer::move_pull<true>});
  if (large) variants_.push_back({"push+nt", &LimitPeer::move_push<true>});
  if (part_ < 1024) return;
  variants_.push_back({"split", &LimitPeer::move_split<false>});
  if (large) variants_.push_back({"split+nt", &LimitPeer::move_split<true>});
}

std::vector<std::string> LimitPeer::prepare(const Problem& problem, void*, void*) {
  problem_ = problem;
  part_ = problem.part_bytes();
  variants_.clear();
  if (problem.collective == Collective::barrier) {
    variants_.push_back({"flags", &LimitPeer::barrier});
  } else {
    plan_moves();
    add_variants(is_fold(problem.collective));
  }
  std::vector<std::string> names;
  for (const Variant& variant : variants_) names.emplace_back(variant.name);
  return names;
}

void LimitPeer::copy_move(const Move& move, const std::byte* from, bool stream) const {
  loops_.copy(recv_of(move.reader) + move.to, from, part_, stream);
}

void LimitPeer::do_local_moves(bool stream) {
  for (const Move& move : moves_) {
    if (move.source != rank_ || move.reader != rank_) continue;
    copy_move(move, input_of(rank_) + move.from, stream);
  }
}

void LimitPeer::write_lines(std::uint32_t channel, const std::byte* data, std::size_t bytes) {
  auto& lines = shared_.lines[rank_][channel][call_ % LimitShared::kDepth];
  for (std::size_t line = 0; line * 56 < bytes; ++line) {
    std::memcpy(lines[line].payload, data + line * 56,
                std::min<std::size_t>(56, bytes - line * 56));
    lines[line].sequence.store(call_, std::memory_order_release);
  }
}

void LimitPeer::read_lines(std::uint32_t source, std::uint32_t channel, std::byte* data,
                           std::size_t bytes) const {
  const auto& lines = shared_.lines[source][channel][call_ % LimitShared::kDepth];
  for (std::size_t line = 0; line * 56 < bytes; ++line) {
    wait([&] { return lines[line].sequence.load(std::memory_order_acquire) == call_; });
    std::memcpy(data + line * 56, lines[line].payload,
                std::min<std::size_t>(56, bytes - line * 56));
  }
}

void LimitPeer::move_lines() {
  wait_reusable(LimitShared::kDepth);
  std::uint32_t written = kMaxRanks;
  for (const Move& move : moves_) {
    if (move.source != rank_ || move.reader == rank_ || move.channel == written) continue;
    write_lines(move.channel, input_of(rank_) + move.from, part_);
    written = move.channel;
  }
  do_local_moves(false);
  for (const Move& move : moves_) {
    if (move.reader != rank_ || move.source == rank_) continue;
    read_lines(move.source, move.channel, recv_of(rank_) + move.to, part_);
  }
  finish();
}

void LimitPeer::move_staged() {
  const std::size_t payload = std::max<std::size_t>(problem_.send_bytes(0), part_);
  wait_reusable(payload <= kSmallSlot ? LimitShared::kDepth : 2);
  const bool gives = std::any_of(moves_.begin(), moves_.end(), [this](const Move& move) {
    return move.source == rank_ && move.reader != rank_;
  });
  if (gives) {
    const std::size_t bytes =
        problem_.collective == Collective::broadcast ? part_ : problem_.send_bytes(rank_);
    loops_.copy(slot_of(rank_), input_of(rank_), bytes, false);
  }
  enter();
  do_local_moves(false);
  for (const Move& move : moves_) {
    if (move.reader != rank_ || move.source == rank_) continue;
    wait_entered(move.source);
    copy_move(move, slot_of(move.source) + move.from, false);
  }
  finish();
}

template <bool kStream>
void LimitPeer::move_pull() {
  enter();
  do_local_moves(kStream);
  for (const Move& move : moves_) {
    if (move.reader != rank_ || move.source == rank_) continue;
    wait_entered(move.source);
    copy_move(move, input_of(move.source) + move.from, kStream);
  }
  finish();
  for (const Move& move : moves_) {
    if (move.source == rank_ && move.reader != rank_) wait_finished(move.reader, call_);
  }
}

template <bool kStream>
void LimitPeer::move_push() {
  enter();
  do_local_moves(kStream);
  for (const Move& move : moves_) {
    if (move.source != rank_ || move.reader == rank_) continue;
    wait_entered(move.reader);
    copy_move(move, input_of(rank_) + move.from, kStream);
  }
  finish();
  for (const Move& move : moves_) {
    if (move.reader == rank_ && move.source != rank_) wait_finished(move.source, call_);
  }
}

// Lane `lane` of as many as there are ranks: all moves end to end, cut at whole lines.
void LimitPeer::copy_share(std::uint32_t lane, bool stream) const {
  std::size_t count = 0;
  for (const Move& move : moves_) count += moves_here(move) ? 1 : 0;
  const std::size_t lines = count * ((part_ + 63) / 64);
  std::size_t first = lines * lane / ranks_;
  const std::size_t last = lines * (lane + 1) / ranks_;
  std::size_t index = 0;
  for (const Move& move : moves_) {
    if (!moves_here(move)) continue;
    const std::size_t base = index++ * ((part_ + 63) / 64);
    const std::size_t end = base + (part_ + 63) / 64;
    if (first >= end || last <= base) continue;
    const std::size_t from = (first - base) * 64;
    const std::size_t to = std::min(part_, (std::min(last, end) - base) * 64);
    loops_.copy(recv_of(move.reader) + move.to + from, input_of(move.source) + move.from + from,
                to - from, stream);
    first = end;
    if (first >= last) return;
  }
}

template <bool kStream>
void LimitPeer::move_split() {
  enter();
  do_local_moves(kStream);
  wait_all_entered();
  copy_share(rank_, kStream);
  finish();
  wait_all_finished();
}

bool LimitPeer::folds_here() const {
  return problem_.collective != Collective::reduce || rank_ == 0;
}

void LimitPeer::fold_lines() {
  wait_reusable(LimitShared::kDepth);
  const bool in_parts = problem_.collective == Collective::reduce_scatter;
  if (in_parts) {
    for (std::uint32_t step = 1; step < ranks_; ++step) {
      const std::uint32_t reader = (rank_ + step) % ranks_;
      write_lines(reader, send_of(rank_) + reader * part_, part_);
    }
  } else if (problem_.collective == Collective::all_reduce || rank_ != 0) {
    write_lines(0, send_of(rank_), part_);
  }
  if (folds_here()) {
    alignas(64) std::array<std::array<std::byte, LimitShared::kSmallBytes>, kMaxRanks> got;
    std::array<const void*, kMaxRanks> sources{};
    for (std::uint32_t source = 0; source < ranks_; ++source) {
      sources[source] = got[source].data();
      if (source == rank_) {
        sources[source] = send_of(rank_) + (in_parts ? rank_ * part_ : 0);
      } else {
        read_lines(source, in_parts ? rank_ : 0, got[source].data(), part_);
      }
    }
    void* const to = recv_of(rank_);
    loops_.fold(problem_.type, &to, 1, sources.data(), ranks_, part_, false);
  }
  finish();
}

void LimitPeer::fold_staged() {
  const std::size_t payload = std::max<std::size_t>(problem_.send_bytes(0), part_);
  wait_reusable(payload <= kSmallSlot ? LimitShared::kDepth : 2);
  const bool gives = problem_.collective != Collective::reduce || rank_ != 0;
  if (gives) loops_.copy(slot_of(rank_), send_of(rank_), problem_.send_bytes(rank_), false);
  enter();
  if (folds_here()) {
    const std::size_t at = problem_.collective == Collective::reduce_scatter ? rank_ * part_ : 0;
    std::array<const void*, kMaxRanks> sources{};
    for (std::uint32_t source = 0; source < ranks_; ++source) {
      if (source != rank_) wait_entered(source);
      sources[source] = (source == rank_ ? send_of(source) : slot_of(source)) + at;
    }
    void* const to = recv_of(rank_);
    loops_.fold(problem_.type, &to, 1, sources.data(), ranks_, part_, false);
  }
  finish();
}

template <bool kStream>
void LimitPeer::fold_direct() {
  enter();
  if (folds_here()) {
    const std::size_t at = problem_.collective == Collective::reduce_scatter ? rank_ * part_ : 0;
    std::array<const void*, kMaxRanks> sources{};
    for (std::uint32_t source = 0; source < ranks_; ++source) {
      if (source != rank_) wait_entered(source);
      sources[source] = send_of(source) + at;
    }
    void* const to = recv_of(rank_);
    loops_.fold(problem_.type, &to, 1, sources.data(), ranks_, part_, kStream);
  }
  finish();
  for (std::uint32_t reader = 0; reader < ranks_; ++reader) {
    const bool reads = problem_.collective != Collective::reduce || reader == 0;
    if (reader != rank_ && reads) wait_finished(reader, call_);
  }
}

template <bool kStream>
void LimitPeer::fold_sharded() {
  enter();
  wait_all_entered();
  const std::size_t lines = (part_ + 63) / 64;
  const std::size_t from = std::min(part_, lines * rank_ / ranks_ * 64);
  const std::size_t to = std::min(part_, lines * (rank_ + 1) / ranks_ * 64);
  std::array<const void*, kMaxRanks> sources{};
  std::array<void*, kMaxRanks> destinations{};
  std::size_t readers = 0;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    sources[rank] = send_of(rank) + from;
    if (problem_.collective == Collective::all_reduce || rank == 0) {
      destinations[readers++] = recv_of(rank) + from;
    }
  }
  loops_.fold(problem_.type, destinations.data(), readers, sources.data(), ranks_, to - from,
              kStream);
  finish();
  wait_all_finished();
}

void LimitPeer::barrier() {
  enter();
  wait_all_entered();
}

const LimitLoops& limit_loops() {
  const bool wide =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  return wide ? kAvx512Loops : kAvx2Loops;
}

}  // namespace penstock::bench
