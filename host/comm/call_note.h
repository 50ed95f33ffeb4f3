// What a rank says about the call that it is in, beside every signal and in every inlined block: 64
// bits, equal on all ranks if they agree about the call.
//
//   bits 0..7 pass (low bits) | 8, 9 offers (see kNoteOffers) | 10..13 collective | 14..17 type |
//   18..20 operation | 21..26 root | 27..63 count (low bits)
//
// Type of a barrier, operation where nothing is reduced and root where there is none are 0.
#ifndef PENSTOCK_COMM_CALL_NOTE_H_
#define PENSTOCK_COMM_CALL_NOTE_H_

#include <cstdint>
#include <string>

#include "penstock/comm/comm.h"

namespace penstock {

// The rank's own part, which others do not have to share: its send buffer, its receive buffer are
// offered in the line behind its fence.
inline constexpr std::uint64_t kNoteOffersSend = std::uint64_t{1} << 8;
inline constexpr std::uint64_t kNoteOffersRecv = std::uint64_t{1} << 9;
inline constexpr std::uint64_t kNoteOffers = kNoteOffersSend | kNoteOffersRecv;
inline constexpr std::uint64_t kNotePass = 0xff;
// Notes of so many passes stand in a fence's line.
inline constexpr std::uint32_t kNoteSlots = 4;

// The note of pass 0 without offers.
std::uint64_t call_note(const Call& call);
constexpr std::uint64_t note_of_pass(std::uint64_t note, std::uint64_t pass) {
  return note | (pass & kNotePass);
}
// "all_reduce of 8 f32 (sum)", "broadcast of 100 int8 from root 2".
std::string describe_note(std::uint64_t note);

}  // namespace penstock
#endif
