// What the SystemC card says to a record before it looks at any memory: its own reading of
// descriptor.h, and of what the card can do.
#ifndef PENSTOCK_SIM_SYSTEMC_DESCRIPTOR_CHECK_H_
#define PENSTOCK_SIM_SYSTEMC_DESCRIPTOR_CHECK_H_

#include <cstdint>

#include "penstock/descriptor/descriptor.h"

namespace penstock::systemc {

// What a completion says, without cookie and sequence.
struct Answer {
  std::uint32_t status = PENSTOCK_OK;
  std::uint32_t field = PENSTOCK_FIELD_NONE;
  std::uint64_t detail = 0;
  bool ok() const { return status == PENSTOCK_OK; }
};

// Capabilities as the card's registers tell them.
struct CardLimits {
  static constexpr std::uint32_t kQueues = 64;
  static constexpr std::uint32_t kWindows = 16;  // of a queue
  static constexpr std::uint32_t kMaxBytesLog2 = 32;
  static constexpr std::uint32_t kOpcodes = 1u << PENSTOCK_OP_NOP | 1u << PENSTOCK_OP_COPY |
                                            1u << PENSTOCK_OP_REDUCE | 1u << PENSTOCK_OP_SIGNAL |
                                            1u << PENSTOCK_OP_WAIT | 1u << PENSTOCK_OP_SELECT |
                                            1u << PENSTOCK_OP_BARRIER;
  static constexpr std::uint32_t kRedops = (1u << PENSTOCK_REDOP_COUNT) - 1;
  // Of the types that are folded in f32; all of them become one another.
  static constexpr std::uint32_t kInF32 = 1u << PENSTOCK_F16 | 1u << PENSTOCK_F32 |
                                          1u << PENSTOCK_BF16 | 1u << PENSTOCK_F8E4M3 |
                                          1u << PENSTOCK_F8E5M2;
  static std::uint32_t redops(std::uint32_t type) { return type == PENSTOCK_F64 ? 0 : kRedops; }
  static std::uint32_t out_types(std::uint32_t type) {
    return (kInF32 >> type & 1) != 0 ? kInF32 : 0;
  }
};

Answer check_record(const penstock_descriptor& record);

}  // namespace penstock::systemc
#endif
