// What the calls of a comm took: how many, how many bytes, how long, and for what.
//
// Nothing is counted here and no clock is read while trace::times_enabled() is false
// (PENSTOCK_STATS); then a CallRecord costs one branch. The split of the time comes from the
// trace::Scopes that end on the calling thread while the call runs: wait (and for whom), copy,
// reduce, signal. What is in none of them is the call's own work.
#ifndef PENSTOCK_COMM_STATISTICS_H_
#define PENSTOCK_COMM_STATISTICS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "penstock/base/trace.h"
#include "penstock/comm/comm.h"

namespace penstock {

// Latencies by powers of two: bucket b counts calls of 2^b to 2^(b+1) - 1 ns; 0 ns is in bucket 0,
// and what is longer than the last bucket (about 4 hours) in the last.
inline constexpr std::size_t kLatencyBuckets = 44;
std::size_t latency_bucket(std::uint64_t ns);
// The latency below which `share` (0..1) of the calls lie, as the upper end of its bucket; 0 if
// there are none.
std::uint64_t latency_quantile(const std::array<std::uint64_t, kLatencyBuckets>& buckets,
                               double share);

struct CollectiveStatistics {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  // count * element size, summed over the calls
  std::uint64_t ns = 0;     // inside the calls
  std::uint64_t max_ns = 0;
  std::uint64_t waits = 0;
  std::uint64_t wait_ns = 0;
  std::uint64_t copy_ns = 0;
  std::uint64_t reduce_ns = 0;
  std::uint64_t signal_ns = 0;
  std::array<std::uint64_t, kLatencyBuckets> latency{};  // of blocking calls
};

// One per comm; one thread at a time. When it ends it reports itself (trace::report) if a call was
// recorded: {"comm":..,"rank":..,"size":..,"waited_for_ns":[..],"collectives":{"all_reduce":{..}}}.
class Statistics {
 public:
  Statistics(std::string comm, std::uint32_t rank, std::uint32_t size)
      : comm_(std::move(comm)), rank_(rank), size_(size) {}
  ~Statistics();
  Statistics(const Statistics&) = delete;
  Statistics& operator=(const Statistics&) = delete;

  const CollectiveStatistics& of(Collective collective) const {
    return collectives_[static_cast<std::size_t>(collective)];
  }
  CollectiveStatistics total() const;
  std::uint64_t waited_for_ns(std::uint32_t rank) const { return waited_for_ns_[rank]; }
  std::string to_json() const;

 private:
  friend class CallRecord;
  std::string comm_;
  std::uint32_t rank_;
  std::uint32_t size_;
  std::array<CollectiveStatistics, kCollectives> collectives_{};
  std::array<std::uint64_t, trace::kTimedRanks> waited_for_ns_{};
};

// The time of one call, from construction to destruction: a slice of the timeline, and an entry in
// the statistics. With blocking false the call is counted and its time split, but its latency is
// not known here and left out of the histogram.
class CallRecord {
 public:
  CallRecord(Statistics& statistics, const Call& call, bool blocking = true)
      : scope_(trace::Kind::call, collective_name(call.collective), bytes_of(call), call.root) {
    if (trace::times_enabled()) [[unlikely]]
      begin(statistics, call, blocking);
  }
  ~CallRecord() {
    if (statistics_ != nullptr) [[unlikely]]
      end();
  }
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

 private:
  static std::uint64_t bytes_of(const Call& call) {
    return trace::enabled() ? call.count * penstock_type_size(call.type) : 0;
  }
  void begin(Statistics& statistics, const Call& call, bool blocking);
  void end();

  trace::Scope scope_;
  Statistics* statistics_ = nullptr;  // null: off when the call began
  Collective collective_ = Collective::barrier;
  bool blocking_ = true;
  std::uint64_t bytes_ = 0;
  std::uint64_t start_ns_ = 0;
  std::optional<trace::Times> before_;  // so that it costs nothing while off
};

}  // namespace penstock
#endif
