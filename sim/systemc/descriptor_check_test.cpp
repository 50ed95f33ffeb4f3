#include "penstock/sim/systemc/descriptor_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "penstock/engine/accept.h"

namespace penstock::systemc {
namespace {

// The card's capabilities, as its driver makes them from the registers.
Capabilities card_capabilities() {
  Capabilities c;
  c.name = "card";
  c.opcodes = CardLimits::kOpcodes;
  for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
    c.redops[type] = CardLimits::redops(type);
    c.out_types[type] = CardLimits::out_types(type);
  }
  c.max_sources = PENSTOCK_MAX_SOURCES;
  c.max_destinations = PENSTOCK_MAX_DESTINATIONS;
  c.max_bytes = std::uint64_t{1} << CardLimits::kMaxBytesLog2;
  c.max_rows = 1024;
  return c;
}

penstock_descriptor record(std::uint32_t opcode, std::uint32_t n_src, std::uint32_t n_dst) {
  penstock_descriptor d{};
  d.opcode = static_cast<std::uint8_t>(opcode);
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.n_src = static_cast<std::uint8_t>(n_src);
  d.n_dst = static_cast<std::uint8_t>(n_dst);
  for (std::uint32_t i = 0; i < std::min(n_src, PENSTOCK_INLINE_SOURCES); ++i)
    d.src[i] = 0x1000 * (i + 1);
  for (std::uint32_t i = 0; i < n_dst; ++i) d.dst[i] = 0x100000 * (i + 1);
  if (n_src > PENSTOCK_INLINE_SOURCES) {
    d.flags = PENSTOCK_FLAG_SRC_LIST;
    for (std::uint32_t i = 1; i < PENSTOCK_INLINE_SOURCES; ++i) d.src[i] = 0;
  }
  return d;
}

// One of each kind, that the check accepts before it is changed.
std::vector<penstock_descriptor> sound_records() {
  std::vector<penstock_descriptor> all;
  all.push_back(record(PENSTOCK_OP_NOP, 0, 0));
  all.push_back(record(PENSTOCK_OP_COPY, 1, 3));
  all.push_back(record(PENSTOCK_OP_SIGNAL, 1, 1));
  all.push_back(record(PENSTOCK_OP_WAIT, 2, 0));
  all.push_back(record(PENSTOCK_OP_SELECT, 3, 1));
  all.push_back(record(PENSTOCK_OP_UPDATE, 2, 0));
  all.push_back(record(PENSTOCK_OP_BARRIER, 2, 1));
  all.back().count = 5;
  for (const std::uint32_t n : {1u, 8u, 9u, 64u}) {
    for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type) {
      all.push_back(record(PENSTOCK_OP_REDUCE, n, 2));
      all.back().type = all.back().out_type = static_cast<std::uint8_t>(type);
      all.back().redop = type % PENSTOCK_REDOP_COUNT;
    }
    all.push_back(record(PENSTOCK_OP_OUTER_STEP, n, 2));
    all.back().type = PENSTOCK_BF16;
    all.back().redop = PENSTOCK_AVG;
    all.back().out_type = PENSTOCK_F32;
  }
  return all;
}

class Checker {
 public:
  void expect_same(const penstock_descriptor& d) {
    std::uint32_t field = 0;
    std::uint64_t detail = 0;
    const std::uint32_t status = check_descriptor(capabilities_, d, &field, &detail);
    const Answer answer = check_record(d);
    ASSERT_EQ(answer.status, status) << describe(d) << " expected field " << field;
    ASSERT_EQ(answer.field, field) << describe(d);
    ASSERT_EQ(answer.detail, detail) << describe(d);
    ++seen_[status];
  }
  std::uint64_t seen(std::uint32_t status) const { return seen_[status]; }

 private:
  static std::string describe(const penstock_descriptor& d) {
    std::string text = penstock_opcode_name(d.opcode);
    for (std::size_t i = 0; i < sizeof(d); ++i)
      text += " " + std::to_string(reinterpret_cast<const unsigned char*>(&d)[i]);
    return text;
  }
  const Capabilities capabilities_ = card_capabilities();
  std::uint64_t seen_[PENSTOCK_STATUS_COUNT] = {};
};

TEST(DescriptorCheck, TakesWhatIsSound) {
  Checker checker;
  for (const penstock_descriptor& d : sound_records()) checker.expect_same(d);
  EXPECT_GT(checker.seen(PENSTOCK_OK), 40u);
}

TEST(DescriptorCheck, NamesTheFieldOfEveryWrongByte) {
  Checker checker;
  for (const penstock_descriptor& base : sound_records()) {
    for (std::size_t at = 0; at < sizeof(base); ++at) {
      for (int value = 0; value < 256; value += at < 32 ? 1 : 15) {
        penstock_descriptor d = base;
        reinterpret_cast<unsigned char*>(&d)[at] = static_cast<unsigned char>(value);
        checker.expect_same(d);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(checker.seen(PENSTOCK_INVALID_ARGUMENT), 10000u);
  EXPECT_GT(checker.seen(PENSTOCK_UNSUPPORTED), 1000u);
}

TEST(DescriptorCheck, NamesTheFirstFieldOfRandomOnes) {
  Checker checker;
  std::mt19937_64 random(3);
  const std::vector<penstock_descriptor> sound = sound_records();
  // Values near which rules change.
  constexpr std::uint64_t kEdges[] = {0,
                                      1,
                                      2,
                                      3,
                                      4,
                                      7,
                                      8,
                                      9,
                                      31,
                                      32,
                                      63,
                                      64,
                                      65,
                                      255,
                                      1u << 20,
                                      (1u << 20) + 1,
                                      1u << 24,
                                      std::uint64_t{1} << 29,
                                      std::uint64_t{1} << 32,
                                      (std::uint64_t{1} << 32) + 1,
                                      std::uint64_t{1} << 48,
                                      (std::uint64_t{1} << 48) + 1,
                                      ~std::uint64_t{0},
                                      std::uint64_t{0xf0} << 56,
                                      std::uint64_t{15} << 56,
                                      std::uint64_t{16} << 56};
  for (int i = 0; i < 300000; ++i) {
    penstock_descriptor d = sound[random() % sound.size()];
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::uint64_t edge = kEdges[random() % std::size(kEdges)];
      auto* bytes = reinterpret_cast<unsigned char*>(&d);
      if (random() % 2 == 0) {
        bytes[random() % 16] = static_cast<unsigned char>(edge);
      } else {
        std::memcpy(bytes + 24 + 8 * (random() % 13), &edge, sizeof(edge));
      }
    }
    checker.expect_same(d);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(checker.seen(PENSTOCK_OK), 1000u);
  EXPECT_GT(checker.seen(PENSTOCK_INVALID_ARGUMENT), 10000u);
  EXPECT_GT(checker.seen(PENSTOCK_UNSUPPORTED), 1000u);
}

}  // namespace
}  // namespace penstock::systemc
