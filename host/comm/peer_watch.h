// What a rank that waits learns about the others: who shows signs of life, who is stopped, who has
// left, and who is to blame when a deadline passes.
#ifndef PENSTOCK_COMM_PEER_WATCH_H_
#define PENSTOCK_COMM_PEER_WATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/comm/rendezvous.h"

namespace penstock {

// One thread at a time; the membership outlives it.
class PeerWatch {
 public:
  PeerWatch(Platform& platform, Membership& membership, std::uint32_t timeout_ms)
      : platform_(platform),
        membership_(membership),
        timeout_ms_(timeout_ms),
        peers_(membership.size()) {}

  // To be called a few times a second while this rank waits for the ranks of `awaited` (bit r: rank
  // r), and for `first` (or kNoRank) before all others: gives a sign of life, and looks at them and
  // at those that they wait for.
  void look(std::uint32_t first, std::uint64_t awaited);
  // The same look at those who are waited for in another way than by a call; gives no sign.
  void follow(std::uint64_t awaited);
  // The rank at the end of the chain that begins with `awaited`: if that one gives signs of life
  // and itself waits for another, that other, and so on.
  std::uint32_t blame(std::uint32_t awaited) const;
  // Whether it is known why the rank does not respond: it waits inside a call, or is stopped.
  bool is_explained(std::uint32_t rank) const;
  // What is known about a rank that did not respond, as the rest of a sentence: ": it has been
  // stopped for 3.0 s (state T)".
  std::string condition(std::uint32_t rank) const;
  // Whether the rank had left the comm already at the look before the last, so that nothing of it
  // is under way any more.
  bool has_left(std::uint32_t rank) const;

 private:
  struct Peer {
    bool seen = false;
    std::uint64_t beats = 0;
    std::uint64_t beat_at_ns = 0;     // when `beats` was seen to change; 0: never
    std::uint64_t stopped_at_ns = 0;  // when first seen stopped; 0: it is not
    std::uint64_t next_state_ns = 0;  // when to ask the system again
    std::uint32_t waits_for = kNoRank;
    std::uint32_t looks_since_left = 0;
  };
  bool is_fresh(const Peer& peer) const;
  void look_at(std::uint32_t rank, std::uint64_t now_ns, bool state_too);

  Platform& platform_;
  Membership& membership_;
  std::uint32_t timeout_ms_;
  std::vector<Peer> peers_;
};

}  // namespace penstock
#endif
