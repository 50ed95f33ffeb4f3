#include "penstock/comm/statistics.h"

#include <algorithm>
#include <bit>

#include "penstock/base/log.h"

namespace penstock {
namespace {

constexpr auto kWait = static_cast<std::size_t>(trace::Kind::wait);
constexpr auto kCopy = static_cast<std::size_t>(trace::Kind::copy);
constexpr auto kReduce = static_cast<std::size_t>(trace::Kind::reduce);
constexpr auto kSignal = static_cast<std::size_t>(trace::Kind::signal);

void add(CollectiveStatistics* sum, const CollectiveStatistics& more) {
  sum->calls += more.calls;
  sum->bytes += more.bytes;
  sum->ns += more.ns;
  sum->max_ns = std::max(sum->max_ns, more.max_ns);
  sum->waits += more.waits;
  sum->wait_ns += more.wait_ns;
  sum->copy_ns += more.copy_ns;
  sum->reduce_ns += more.reduce_ns;
  sum->signal_ns += more.signal_ns;
  for (std::size_t b = 0; b < kLatencyBuckets; ++b) sum->latency[b] += more.latency[b];
}

std::string json_of(const CollectiveStatistics& numbers) {
  std::string latency;
  for (std::size_t b = 0; b < kLatencyBuckets; ++b) {
    if (numbers.latency[b] == 0) continue;
    latency += fmt::format("{}\"{}\":{}", latency.empty() ? "" : ",", b, numbers.latency[b]);
  }
  return fmt::format(
      "{{\"calls\":{},\"bytes\":{},\"ns\":{},\"max_ns\":{},\"waits\":{},\"wait_ns\":{},"
      "\"copy_ns\":{},\"reduce_ns\":{},\"signal_ns\":{},\"latency_log2_ns\":{{{}}}}}",
      numbers.calls, numbers.bytes, numbers.ns, numbers.max_ns, numbers.waits, numbers.wait_ns,
      numbers.copy_ns, numbers.reduce_ns, numbers.signal_ns, latency);
}

// The name of a comm is the caller's, so that it may hold anything.
std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      quoted += fmt::format("\\u{:04x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

std::size_t latency_bucket(std::uint64_t ns) {
  const auto bucket = static_cast<std::size_t>(std::bit_width(ns | 1) - 1);
  return std::min(bucket, kLatencyBuckets - 1);
}

std::uint64_t latency_quantile(const std::array<std::uint64_t, kLatencyBuckets>& buckets,
                               double share) {
  std::uint64_t calls = 0;
  for (const std::uint64_t count : buckets) calls += count;
  if (calls == 0) return 0;
  const double wanted = share * static_cast<double>(calls);
  std::uint64_t seen = 0;
  for (std::size_t b = 0; b < kLatencyBuckets; ++b) {
    seen += buckets[b];
    if (seen > 0 && static_cast<double>(seen) >= wanted) return (std::uint64_t{2} << b) - 1;
  }
  return (std::uint64_t{2} << (kLatencyBuckets - 1)) - 1;
}

Statistics::~Statistics() {
  if (!trace::times_enabled() || total().calls == 0) return;
  const Status status = trace::report(to_json());
  if (!status.ok()) log::warn("{}", status.message());
}

CollectiveStatistics Statistics::total() const {
  CollectiveStatistics sum;
  for (const CollectiveStatistics& each : collectives_) add(&sum, each);
  return sum;
}

std::string Statistics::to_json() const {
  std::string waited;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    waited += fmt::format("{}{}", rank == 0 ? "" : ",", waited_for_ns_[rank]);
  }
  std::string collectives;
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (of(collective).calls == 0) continue;
    collectives += fmt::format("{}\"{}\":{}", collectives.empty() ? "" : ",",
                               collective_name(collective), json_of(of(collective)));
  }
  return fmt::format(
      "{{\"comm\":{},\"rank\":{},\"size\":{},\"waited_for_ns\":[{}],\"collectives\":{{{}}}}}",
      json_string(comm_), rank_, size_, waited, collectives);
}

void CallRecord::begin(Statistics& statistics, const Call& call, bool blocking) {
  statistics_ = &statistics;
  collective_ = call.collective;
  blocking_ = blocking;
  bytes_ = bytes_of(call);
  before_ = trace::thread_times();
  start_ns_ = trace::detail::now_ns();
}

void CallRecord::end() {
  const std::uint64_t ns = trace::detail::now_ns() - start_ns_;
  const trace::Times& now = trace::thread_times();
  CollectiveStatistics& numbers = statistics_->collectives_[static_cast<std::size_t>(collective_)];
  ++numbers.calls;
  numbers.bytes += bytes_;
  numbers.ns += ns;
  numbers.waits += now.count[kWait] - before_->count[kWait];
  numbers.wait_ns += now.ns[kWait] - before_->ns[kWait];
  numbers.copy_ns += now.ns[kCopy] - before_->ns[kCopy];
  numbers.reduce_ns += now.ns[kReduce] - before_->ns[kReduce];
  numbers.signal_ns += now.ns[kSignal] - before_->ns[kSignal];
  for (std::size_t rank = 0; rank < trace::kTimedRanks; ++rank) {
    statistics_->waited_for_ns_[rank] += now.waited_for_ns[rank] - before_->waited_for_ns[rank];
  }
  if (!blocking_) return;
  numbers.max_ns = std::max(numbers.max_ns, ns);
  ++numbers.latency[latency_bucket(ns)];
}

}  // namespace penstock
