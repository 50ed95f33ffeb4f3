#include "penstock/memory/agreement_block.h"

#include "penstock/base/checksum.h"

namespace penstock {

std::uint64_t agreement_bytes(std::uint32_t participants, std::uint32_t depth) {
  return std::uint64_t{participants} * depth * kAgreementBlockBytes;
}

std::uint64_t pool_agreement_bytes(std::uint32_t hosts) {
  return kPoolAgreements * agreement_bytes(hosts, kPoolAgreementDepth) + std::uint64_t{hosts} * 64;
}

void format_agreement(Platform& platform, Coherence coherence, const AgreementSpace& space) {
  const SharedMemory memory(platform, coherence);
  const AgreementRecord none{};
  const std::uint64_t bytes = agreement_bytes(space.participants, space.depth);
  for (std::uint64_t at = 0; at < bytes; at += sizeof none) {
    memory.store(space.base + at, &none, sizeof none);
  }
}

Status unreadable_block(std::uint32_t slot, std::uint32_t participant) {
  return error(Code::corrupt,
               "the agreement block of participant {} in slot {} is damaged: neither of its copies "
               "has a right checksum",
               participant, slot);
}

bool AgreementBlocks::counts(const AgreementRecord& record, std::uint32_t slot) const {
  if (record.magic == 0) {
    const AgreementRecord none{};
    return std::memcmp(&record, &none, sizeof none) == 0;
  }
  return record.magic == kAgreementMagic &&
         record.checksum == crc32c(&record, offsetof(AgreementRecord, checksum)) &&
         record.number > 0 && slot_of(record.number) == slot && record.promised < kMaxBallot &&
         record.accepted <= record.promised && record.decided <= 1 &&
         (record.decided == 0 || record.accepted > 0);
}

AgreementBlocks::Look AgreementBlocks::look(std::uint32_t slot, std::uint32_t participant) const {
  Look seen;
  memory_.load(seen.copies, at(slot, participant), sizeof seen.copies);
  for (int copy = 0; copy < 2; ++copy) seen.counts[copy] = counts(seen.copies[copy], slot);
  return seen;
}

std::optional<AgreementRecord> AgreementBlocks::load(std::uint32_t slot,
                                                     std::uint32_t participant) const {
  Look seen = look(slot, participant);
  int torn = -1;
  if (!seen.counts[0] || !seen.counts[1]) {
    torn = seen.counts[0] ? 1 : 0;
    seen = look(slot, participant);
  }
  if (seen.counts[0] && seen.counts[1]) {
    return seen.copies[seen.copies[0].sequence >= seen.copies[1].sequence ? 0 : 1];
  }
  if (torn >= 0 && !seen.counts[torn] && seen.counts[1 - torn]) return seen.copies[1 - torn];
  return std::nullopt;
}

Result<AgreementRecord> AgreementBlocks::load_settled(std::uint32_t slot,
                                                      std::uint32_t participant) const {
  for (std::uint32_t turn = 0; turn < kUnreadableTurns; ++turn) {
    if (const auto record = load(slot, participant)) return *record;
  }
  return unreadable_block(slot, participant);
}

void AgreementBlocks::store(std::uint32_t slot, std::uint32_t participant,
                            AgreementRecord* record) const {
  record->magic = kAgreementMagic;
  ++record->sequence;
  record->checksum = crc32c(record, offsetof(AgreementRecord, checksum));
  std::byte* copy = at(slot, participant) + (record->sequence % 2) * sizeof *record;
  memory_.store(copy, record, sizeof *record);
}

}  // namespace penstock
