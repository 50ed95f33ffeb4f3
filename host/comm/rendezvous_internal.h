// What the files of Membership share.
#ifndef PENSTOCK_COMM_RENDEZVOUS_INTERNAL_H_
#define PENSTOCK_COMM_RENDEZVOUS_INTERNAL_H_

#include <cstdint>
#include <string>

namespace penstock {

inline constexpr std::uint32_t kTableLock = 0;
inline constexpr std::uint32_t kCommsLock = 1;
inline constexpr std::uint32_t kLeaveTimeoutMs = 2000;
inline constexpr std::uint32_t kMaxInlineLines = 256;

// Whether a comm's region of this name is payload, not a control region.
inline bool is_scratch(const std::string& region) {
  return region.find("/scratch.") != std::string::npos;
}

}  // namespace penstock
#endif
