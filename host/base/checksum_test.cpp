#include "penstock/base/checksum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace penstock {
namespace {

// RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, published_vectors) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  std::vector<unsigned char> bytes(32, 0);
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x8a9136aau);
  bytes.assign(32, 0xff);
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x62a8ab43u);
  for (int i = 0; i < 32; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<unsigned char>(i);
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x46dd794eu);
  EXPECT_EQ(crc32c("", 0), 0u);
}

TEST(Crc32c, continues_over_pieces) {
  const char text[] = "a pool carries bytes to an engine";
  const std::size_t length = std::strlen(text);
  for (std::size_t cut = 0; cut <= length; ++cut) {
    EXPECT_EQ(crc32c(text + cut, length - cut, crc32c(text, cut)), crc32c(text, length));
  }
}

}  // namespace
}  // namespace penstock
