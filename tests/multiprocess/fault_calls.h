// Calls whose results can be told without the code under test.
#ifndef PENSTOCK_TESTS_MULTIPROCESS_FAULT_CALLS_H_
#define PENSTOCK_TESTS_MULTIPROCESS_FAULT_CALLS_H_

#include <cstdint>
#include <string>

#include "penstock/comm/comm.h"

namespace penstock::test {

// Every member of Collective; send_recv goes around the ring of the ranks, in both directions.
inline constexpr std::uint32_t kFaultCollectives = 10;

// Runs the collective with `count` elements of 32 bits and the root turn % size. *wrong tells of a
// result that is not right although the call returned ok.
Status call_and_check(Comm& comm, Collective collective, std::uint64_t count, int turn,
                      bool blocking, std::string* wrong);

}  // namespace penstock::test
#endif
