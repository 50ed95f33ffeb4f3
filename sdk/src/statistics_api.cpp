// Statistics in the C interface.
#include <algorithm>

#include "comm_handle.h"
#include "penstock/comm/statistics.h"

using penstock::Code;
using penstock::Status;
using penstock::sdk::check_size;
using penstock::sdk::guarded;

static_assert(PENSTOCK_LATENCY_BUCKETS == penstock::kLatencyBuckets);

extern "C" {

penstock_status penstock_comm_statistics(const penstock_comm* comm, std::int32_t collective,
                                         penstock_statistics* statistics) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return penstock::sdk::null_comm();
    if (statistics == nullptr) {
      return Status(Code::invalid_argument, "penstock_comm_statistics: statistics is null");
    }
    PENSTOCK_TRY(check_size("penstock_statistics", statistics->size, sizeof(*statistics)));
    const penstock::Statistics& all = comm->comm->statistics();
    penstock::CollectiveStatistics numbers;
    if (collective == PENSTOCK_ALL_COLLECTIVES) {
      numbers = all.total();
    } else {
      PENSTOCK_ASSIGN(const penstock::Collective which, penstock::sdk::to_collective(collective));
      numbers = all.of(which);
    }
    statistics->timed = penstock::trace::times_enabled() ? 1 : 0;
    statistics->calls = numbers.calls;
    statistics->bytes = numbers.bytes;
    statistics->ns = numbers.ns;
    statistics->wait_ns = numbers.wait_ns;
    statistics->copy_ns = numbers.copy_ns;
    statistics->reduce_ns = numbers.reduce_ns;
    statistics->signal_ns = numbers.signal_ns;
    statistics->waits = numbers.waits;
    statistics->max_ns = numbers.max_ns;
    std::copy(numbers.latency.begin(), numbers.latency.end(), statistics->latency);
    return {};
  });
}
}
