// What a collective must give, by plain loops over the definition: a left fold in rank order.
#ifndef PENSTOCK_SIM_INCOHERENT_EXPECTATION_H_
#define PENSTOCK_SIM_INCOHERENT_EXPECTATION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "penstock/comm/comm.h"

namespace penstock::sim {

// Types that occur in scenarios, whose arithmetic the language itself has.
bool is_plain_type(std::uint32_t type);

// The element `index` of the buffer that `rank` sends: as bits from which one value of the type is
// made (see store_element).
using Inputs = std::function<std::uint64_t(std::uint32_t rank, std::uint64_t index)>;

// Writes the element that these bits stand for. Floats are finite, of moderate size and never zero.
void store_element(std::uint32_t type, std::uint64_t bits, void* at);

// The bytes of the receive buffer of `rank` after the call; empty where it receives nothing.
std::vector<std::byte> expected_result(const Call& call, std::uint32_t rank, std::uint32_t size,
                                       const Inputs& inputs);

}  // namespace penstock::sim
#endif
