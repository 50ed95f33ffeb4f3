// Where the card's registers are: the generated map under shorter names.
#ifndef PENSTOCK_SIM_SYSTEMC_REGISTER_OFFSETS_H_
#define PENSTOCK_SIM_SYSTEMC_REGISTER_OFFSETS_H_

#include <cstdint>

#include "penstock/descriptor/register_map.h"

namespace penstock::systemc {

inline constexpr std::uint32_t kRegisterBytes = 0x10000;
inline constexpr std::uint32_t kId = PENSTOCK_REGISTER_ID, kVersion = PENSTOCK_REGISTER_VERSION,
                               kCapOpcodes = PENSTOCK_REGISTER_CAP_OPCODES,
                               kCapLimits = PENSTOCK_REGISTER_CAP_LIMITS,
                               kCapMaxBytesLog2 = PENSTOCK_REGISTER_CAP_MAX_BYTES,
                               kCapRows = PENSTOCK_REGISTER_CAP_ROWS,
                               kCapTable = PENSTOCK_REGISTER_CAP_TABLE,
                               kCapLanes = PENSTOCK_REGISTER_CAP_LANES,
                               kCapFilters = PENSTOCK_REGISTER_CAP_FILTERS,
                               kCapScores = PENSTOCK_REGISTER_CAP_SCORES,
                               kCapNormalise = PENSTOCK_REGISTER_CAP_NORMALISE,
                               kCapTypes = PENSTOCK_REGISTER_CAP_TYPE_INT8;
// The low halves of what is 64 bits wide.
inline constexpr std::uint32_t kControl = PENSTOCK_REGISTER_CONTROL,
                               kStatus = PENSTOCK_REGISTER_STATUS,
                               kClockKhz = PENSTOCK_REGISTER_CLOCK_KHZ,
                               kIrqCause = PENSTOCK_REGISTER_IRQ_CAUSE_LO,
                               kIrqError = PENSTOCK_REGISTER_IRQ_ERROR,
                               kIrqMask = PENSTOCK_REGISTER_IRQ_MASK_LO,
                               kIrqErrorMask = PENSTOCK_REGISTER_IRQ_ERROR_MASK,
                               kErrorCode = PENSTOCK_REGISTER_ERROR_CODE,
                               kErrorSequence = PENSTOCK_REGISTER_ERROR_SEQUENCE,
                               kErrorAddress = PENSTOCK_REGISTER_ERROR_ADDRESS_LO,
                               kErrorDescriptor = PENSTOCK_REGISTER_ERROR_DESCRIPTOR,
                               kCountersBase = PENSTOCK_REGISTER_CYCLES_LO;
inline constexpr std::uint32_t kQueuesBase = PENSTOCK_REGISTER_QUEUE,
                               kQueueBytes = PENSTOCK_REGISTER_QUEUE_STRIDE,
                               kWindowsBase = PENSTOCK_REGISTER_WINDOW,
                               kWindowBytes = PENSTOCK_REGISTER_WINDOW_STRIDE2;
inline constexpr std::uint32_t kIdValue = PENSTOCK_REGISTER_ID_RESET,
                               kVersionValue = PENSTOCK_REGISTER_VERSION_RESET;

// The half of a register of 64 bits that is at an offset.
inline std::uint32_t half(std::uint64_t value, std::uint32_t offset) {
  return static_cast<std::uint32_t>(offset % 8 == 0 ? value : value >> 32);
}
inline void set_half(std::uint64_t* value, std::uint32_t offset, std::uint32_t half) {
  const std::uint32_t shift = offset % 8 == 0 ? 0 : 32;
  *value = (*value & ~(std::uint64_t{0xffffffff} << shift)) | std::uint64_t{half} << shift;
}

}  // namespace penstock::systemc
#endif
