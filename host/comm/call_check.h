// Whether a call makes sense, before anything is touched.
#ifndef PENSTOCK_COMM_CALL_CHECK_H_
#define PENSTOCK_COMM_CALL_CHECK_H_

#include "penstock/comm/comm.h"

namespace penstock {

// invalid_argument names the argument, its value and what would be right: unknown collective, type
// or operation, root out of range, count beyond PENSTOCK_MAX_COUNT elements in all, a scale without
// PREMUL_SUM, a missing buffer, buffers that overlap without being in place.
Status check_call(const Call& call, std::uint32_t rank, std::uint32_t size);

// Length in bytes of the buffers that this rank gives to the call; 0 where it needs none.
struct BufferBytes {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
};
BufferBytes buffer_bytes(const Call& call, std::uint32_t rank, std::uint32_t size);

}  // namespace penstock
#endif
