// CRC-32C (Castagnoli, polynomial 0x1edc6f41 reflected, as in RFC 3720 appendix B.4) for records
// that are read back from shared memory.
#ifndef PENSTOCK_BASE_CHECKSUM_H_
#define PENSTOCK_BASE_CHECKSUM_H_

#include <cstddef>
#include <cstdint>

namespace penstock {

// Continues from `seed`, the result over the preceding bytes; 0 to begin. Thread-safe.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t seed = 0);

}  // namespace penstock
#endif
