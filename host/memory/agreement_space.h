// Where the blocks of an agreement lie (agreement.h).
#ifndef PENSTOCK_MEMORY_AGREEMENT_SPACE_H_
#define PENSTOCK_MEMORY_AGREEMENT_SPACE_H_

#include <cstddef>
#include <cstdint>

namespace penstock {

// Line-aligned memory of agreement_bytes(participants, depth).
struct AgreementSpace {
  std::byte* base = nullptr;
  std::uint32_t participants = 0;  // 1..kMaxParticipants
  std::uint32_t depth = 0;         // 2..kMaxAgreementDepth decisions are kept
};
inline constexpr std::uint32_t kMaxParticipants = 64;
inline constexpr std::uint32_t kMaxAgreementDepth = 64;
std::uint64_t agreement_bytes(std::uint32_t participants, std::uint32_t depth);

// What every pool keeps for its hosts, one participant a host: kPoolAgreements histories one after
// the other, then a beat line per host (agreement_members.h).
inline constexpr std::uint32_t kPoolAgreements = 8;
inline constexpr std::uint32_t kPoolAgreementDepth = 2;
inline constexpr std::uint32_t kMembershipAgreement = 0;  // MembershipView
inline constexpr std::uint32_t kFirstRoleAgreement = 1;   // 1..7: RoleLease
std::uint64_t pool_agreement_bytes(std::uint32_t hosts);

}  // namespace penstock
#endif
