#include "penstock/comm/peer_watch.h"

#include <bit>

namespace penstock {
namespace {

constexpr std::uint64_t kStateNs = 50'000'000;  // how often /proc is asked

}  // namespace

bool PeerWatch::is_fresh(const Peer& peer) const {
  return peer.beat_at_ns != 0 &&
         platform_.now_ns() - peer.beat_at_ns < sign_counts_for_ns(timeout_ms_) &&
         peer.stopped_at_ns == 0;
}

void PeerWatch::look_at(std::uint32_t rank, std::uint64_t now_ns, bool state_too) {
  Peer& peer = peers_[rank];
  std::uint32_t waits_for = kNoRank;
  const std::uint64_t beats = membership_.beats_of(rank, &waits_for);
  // How old the signs are that the first look finds is not known.
  if (peer.seen && beats != peer.beats) peer.beat_at_ns = now_ns;
  peer.seen = true;
  peer.beats = beats;
  peer.waits_for = waits_for;
  if (!state_too) return;
  if (!is_stopped(membership_.process_state(rank))) {
    peer.stopped_at_ns = 0;
  } else if (peer.stopped_at_ns == 0) {
    peer.stopped_at_ns = now_ns;
  }
}

void PeerWatch::look(std::uint32_t first, std::uint64_t awaited) {
  membership_.beat(first);
  follow(awaited);
  for (std::uint32_t rank = 0; rank < peers_.size(); ++rank) {
    if (((awaited >> rank) & 1) == 0) continue;
    Peer& peer = peers_[rank];
    peer.looks_since_left = membership_.has_left(rank) ? peer.looks_since_left + 1 : 0;
  }
}

void PeerWatch::follow(std::uint64_t awaited) {
  const std::uint64_t now_ns = platform_.now_ns();
  std::uint64_t seen = std::uint64_t{1} << membership_.rank();
  for (; awaited != 0; awaited &= awaited - 1) {
    auto rank = static_cast<std::uint32_t>(std::countr_zero(awaited));
    while (((seen >> rank) & 1) == 0) {
      seen |= std::uint64_t{1} << rank;
      Peer& peer = peers_[rank];
      const bool state_too = now_ns >= peer.next_state_ns;
      if (state_too) peer.next_state_ns = now_ns + kStateNs;
      look_at(rank, now_ns, state_too);
      if (!is_fresh(peer) || peer.waits_for == kNoRank) break;
      rank = peer.waits_for;
    }
  }
}

std::uint32_t PeerWatch::blame(std::uint32_t awaited) const {
  std::uint32_t rank = awaited;
  for (std::size_t step = 0; step < peers_.size(); ++step) {
    const Peer& peer = peers_[rank];
    if (!is_fresh(peer) || peer.waits_for == kNoRank) return rank;
    // A circle: they wait for each other, and whoever was waited for first is as good as any.
    if (peer.waits_for == membership_.rank()) return awaited;
    rank = peer.waits_for;
  }
  return awaited;
}

bool PeerWatch::is_explained(std::uint32_t rank) const {
  return is_fresh(peers_[rank]) || is_stopped(membership_.process_state(rank));
}

std::string PeerWatch::condition(std::uint32_t rank) const {
  const Peer& peer = peers_[rank];
  const char state = membership_.process_state(rank);
  const std::uint64_t now_ns = platform_.now_ns();
  if (is_stopped(state)) {
    const std::uint64_t since = peer.stopped_at_ns == 0 ? now_ns : peer.stopped_at_ns;
    return fmt::format(": it has been stopped for {:.1f} s (state {})",
                       static_cast<double>(now_ns - since) * 1e-9, state);
  }
  if (state == '?') return "";
  if (is_fresh(peer)) return fmt::format(": it waits inside a call (state {})", state);
  return fmt::format(": it lives (state {}), but is not inside a call of this comm", state);
}

bool PeerWatch::has_left(std::uint32_t rank) const { return peers_[rank].looks_since_left > 1; }

}  // namespace penstock
