// What `penstock perf` puts into buffers, and what must stand in them after a call, byte by byte.
//
// Computed element by element in plain arithmetic, apart from any engine. Inputs are chosen so that
// plain double arithmetic is exact, and one rounding at the end gives what the numeric contract
// says: integers and small binary fractions for sums, powers of two (one rank has 3 times one) for
// products; with some zeros of both signs, infinities (where the type has them and does not
// saturate) and NaNs. Integers are any bits. What only moves is any bytes.
#ifndef PENSTOCK_SDK_TOOL_PERF_EXPECTATION_H_
#define PENSTOCK_SDK_TOOL_PERF_EXPECTATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/comm/comm.h"

namespace penstock::tool {

struct Scenario {
  Collective collective = Collective::all_reduce;
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;
  std::uint64_t count = 0;  // as in Call
  std::uint32_t type = 0;
  std::uint32_t redop = 0;
  bool in_place = false;
  std::uint64_t seed = 0;
};

// Bits of a floating-point value rounded once, to nearest even, to `type` (a float type): overflow
// gives infinity, in eight-bit types the largest finite value; a NaN the canonical one.
std::uint64_t encode_float(std::uint32_t type, double value);

// Call::scale of a scenario: 3 in the fold type for premul_sum, else 0.
std::uint64_t scale_of(const Scenario& scenario);

// Element `index` of the send buffer of `rank` (parts one after another), as bits of the type.
std::uint64_t input_bits(const Scenario& scenario, std::uint32_t rank, std::uint64_t index);
// What the reduction of all ranks' element `index` gives.
std::uint64_t reduced_bits(const Scenario& scenario, std::uint64_t index);
// Element `index` of the receive buffer of `rank` after the call.
std::uint64_t output_bits(const Scenario& scenario, std::uint32_t rank, std::uint64_t index);

// Elements of a rank's send and receive buffers; whether the call writes its receive buffer.
std::uint64_t send_elements(const Scenario& scenario, std::uint32_t rank);
std::uint64_t recv_elements(const Scenario& scenario, std::uint32_t rank);
bool receives(const Scenario& scenario, std::uint32_t rank);

// One rank's buffers, between guard zones, together with what they hold after the call.
class PerfBuffers {
 public:
  // Room for `scenario` on `rank`; all bytes are written once, so that their pages are there.
  PerfBuffers(const Scenario& scenario, std::uint32_t rank);
  PerfBuffers(PerfBuffers&&) = default;
  PerfBuffers(const PerfBuffers&) = delete;
  PerfBuffers& operator=(const PerfBuffers&) = delete;

  // Writes inputs, guards and the pattern of what no call may touch.
  void fill(std::uint64_t seed);
  const void* send() const { return send_; }
  void* recv() const { return recv_; }
  // The number of elements, and of guard bytes, that are not what they must be.
  std::uint64_t count_wrong() const;

 private:
  struct Area {
    std::vector<std::byte> bytes;  // guard, payload, guard
    std::byte* payload() { return bytes.data() + kGuardBytes; }
    std::uint64_t payload_bytes() const { return bytes.size() - 2 * kGuardBytes; }
  };
  static constexpr std::size_t kGuardBytes = 256;

  void lay_out();

  Scenario scenario_;
  std::uint32_t rank_;
  std::uint64_t element_bytes_;
  Area first_;   // the send buffer, or in place the only one
  Area second_;  // the receive buffer
  std::byte* send_ = nullptr;
  std::byte* recv_ = nullptr;
};

}  // namespace penstock::tool
#endif
