// The blocks of an agreement: per decision slot and participant two copies of 128 bytes, written in
// turn by that participant only.
//
// The writer of sequence number s writes copy s % 2, so that the other one, with s - 1, stays whole
// whatever happens. A copy counts when its checksum and its bounds hold, or when it is all zero
// (sequence number 0, nothing written yet); of two that count, the one with the higher sequence
// number is the block.
//
// A reader that finds one copy torn must not take the other of the same look: that one may have
// been read before the writer wrote it, and then the torn one, so that it is two writes old. It
// looks again. What it then finds in the other copy is at least what was written before the write
// that tore the first one; so if the same copy is torn as before, the other one is the block.
// Otherwise the writer is at work, and the reader begins anew. Model: tests/models/block.pml.
#ifndef PENSTOCK_MEMORY_AGREEMENT_BLOCK_H_
#define PENSTOCK_MEMORY_AGREEMENT_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "penstock/memory/agreement.h"

namespace penstock {

struct AgreementRecord {
  std::uint64_t magic;     // kAgreementMagic, or 0 in a copy that was never written
  std::uint64_t sequence;  // of the writes to this block
  std::uint64_t number;    // of the decision that this is about
  std::uint64_t promised;  // the highest ballot that the participant began
  std::uint64_t accepted;  // the ballot in which it took `value`; 0: none
  AgreementValue value;
  std::uint32_t decided;   // 1: `value` is the decision
  std::uint32_t checksum;  // CRC-32C of all bytes before
};
static_assert(sizeof(AgreementRecord) == 128, "a copy is two cache lines");
static_assert(offsetof(AgreementRecord, checksum) == 124);
inline constexpr std::uint64_t kAgreementMagic = 0x454552474153504e;  // "NPSAGREE"
inline constexpr std::uint64_t kMaxBallot = std::uint64_t{1} << 60;
inline constexpr std::size_t kAgreementBlockBytes = 2 * sizeof(AgreementRecord);

// Value type; the space outlives it.
class AgreementBlocks {
 public:
  AgreementBlocks(SharedMemory memory, const AgreementSpace& space)
      : memory_(memory), space_(space) {}

  const AgreementSpace& space() const { return space_; }
  std::uint32_t slot_of(std::uint64_t number) const {
    return static_cast<std::uint32_t>(number % space_.depth);
  }

  // A state of the block that is no older than the call. Nothing when the writer was too fast, or
  // the block is damaged: read again.
  std::optional<AgreementRecord> load(std::uint32_t slot, std::uint32_t participant) const;
  // As load, but again and again while it is unreadable. A writer at work is past in no time, and
  // one that stopped leaves a whole copy, so that many failures in a row mean damage (corrupt).
  Result<AgreementRecord> load_settled(std::uint32_t slot, std::uint32_t participant) const;
  // Raises record->sequence, seals and publishes it.
  void store(std::uint32_t slot, std::uint32_t participant, AgreementRecord* record) const;

 private:
  std::byte* at(std::uint32_t slot, std::uint32_t participant) const {
    return space_.base +
           (std::size_t{slot} * space_.participants + participant) * kAgreementBlockBytes;
  }
  bool counts(const AgreementRecord& record, std::uint32_t slot) const;
  struct Look {
    AgreementRecord copies[2];
    bool counts[2];
  };
  Look look(std::uint32_t slot, std::uint32_t participant) const;

  SharedMemory memory_;
  AgreementSpace space_;
};

Status unreadable_block(std::uint32_t slot, std::uint32_t participant);
inline constexpr std::uint32_t kUnreadableTurns = 1000;

}  // namespace penstock
#endif
