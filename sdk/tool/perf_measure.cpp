#include "perf_measure.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "penstock/descriptor/descriptor.h"
#include "sizes.h"

namespace penstock::tool {
namespace {

constexpr std::size_t kOutstanding = 8;             // requests on their way in non-blocking mode
constexpr std::uint64_t kBudgetNs = 1'000'000'000;  // of one measurement, unless -n is given
constexpr std::uint64_t kFewestIterations = 3;

struct Process {
  std::uint32_t pid;
  char host[60];
};

}  // namespace

bool has_in_place(Collective collective) {
  return collective != Collective::send_recv && collective != Collective::barrier;
}

Status Measure::barrier() {
  Call call;
  call.collective = Collective::barrier;
  return comm_.run(call);
}

// One number of all ranks' numbers.
Result<std::uint64_t> Measure::agree(std::uint64_t value, std::uint32_t redop) {
  std::uint64_t result = 0;
  Call call;
  call.collective = Collective::all_reduce;
  call.send = &value;
  call.recv = &result;
  call.count = 1;
  call.type = PENSTOCK_UINT64;
  call.redop = redop;
  PENSTOCK_TRY(comm_.run(call));
  return result;
}

Status Measure::start(const Scenario& scenario, PerfBuffers& buffers,
                      std::vector<std::shared_ptr<Request>>& requests) {
  Call call;
  call.collective = scenario.collective;
  call.send = buffers.send();
  call.recv = buffers.recv();
  call.count = scenario.count;
  call.type = scenario.type;
  call.root = scenario.root;
  if (reduces(scenario.collective)) {
    call.redop = scenario.redop;
    call.scale = scale_of(scenario);
  }
  if (scenario.collective == Collective::barrier) {
    call = Call();
  } else if (scenario.collective == Collective::send_recv) {
    // A ring: every rank sends to the next one.
    Call sending = call;
    sending.sender = true;
    sending.recv = nullptr;
    sending.root = (comm_.rank() + 1) % comm_.size();
    PENSTOCK_ASSIGN(auto sent, comm_.start(sending));
    requests.push_back(std::move(sent));
    call.send = nullptr;
    call.root = (comm_.rank() + comm_.size() - 1) % comm_.size();
  }
  PENSTOCK_ASSIGN(auto request, comm_.start(call));
  requests.push_back(std::move(request));
  return {};
}

Status Measure::call(const Scenario& scenario, PerfBuffers& buffers, std::uint64_t times) {
  std::vector<std::shared_ptr<Request>> requests;
  for (std::uint64_t i = 0; i < times; ++i) {
    PENSTOCK_TRY(start(scenario, buffers, requests));
    if (!options_.blocking && requests.size() < kOutstanding && i + 1 < times) continue;
    for (const auto& request : requests) PENSTOCK_TRY(comm_.wait(*request));
    requests.clear();
  }
  return {};
}

// Returns how many iterations to time.
Result<std::uint64_t> Measure::warm_up(const Scenario& scenario, PerfBuffers& buffers) {
  PENSTOCK_TRY(barrier());
  const std::uint64_t began = platform_.now_ns();
  // The first call tells whether even the warm-up would take too long.
  std::uint64_t done = std::min<std::uint64_t>(options_.warmup, 1);
  PENSTOCK_TRY(call(scenario, buffers, done));
  PENSTOCK_ASSIGN(std::uint64_t slowest, agree(platform_.now_ns() - began, PENSTOCK_MAX));
  std::uint64_t left = options_.warmup - done;
  if (!options_.fixed_iterations) left = std::min(left, kBudgetNs / (slowest + 1));
  PENSTOCK_TRY(call(scenario, buffers, left));
  done += left;
  PENSTOCK_ASSIGN(slowest, agree(platform_.now_ns() - began, PENSTOCK_MAX));
  if (options_.fixed_iterations || done == 0) return options_.iterations;
  const std::uint64_t affordable = kBudgetNs / (slowest / done + 1);
  return std::min(options_.iterations, std::max(kFewestIterations, affordable));
}

// Nanoseconds per call at this rank.
Result<double> Measure::time_calls(const Scenario& scenario, PerfBuffers& buffers,
                                   std::uint64_t iterations) {
  std::uint64_t elapsed = 0;
  if (options_.fresh) {
    for (std::uint64_t i = 0; i < iterations; ++i) {
      buffers.fill(scenario.seed + i);
      PENSTOCK_TRY(barrier());
      const std::uint64_t began = platform_.now_ns();
      PENSTOCK_TRY(call(scenario, buffers, 1));
      elapsed += platform_.now_ns() - began;
    }
  } else {
    PENSTOCK_TRY(barrier());
    const std::uint64_t began = platform_.now_ns();
    PENSTOCK_TRY(call(scenario, buffers, iterations));
    elapsed = platform_.now_ns() - began;
  }
  return static_cast<double>(elapsed) / static_cast<double>(iterations);
}

Result<PerfTime> Measure::run(const Scenario& scenario, Traffic* traffic) {
  PerfBuffers buffers(scenario, comm_.rank());
  PerfTime result;
  result.measured = true;
  PENSTOCK_ASSIGN(result.iterations, warm_up(scenario, buffers));
  const CommCounters before = comm_.counters();
  PENSTOCK_ASSIGN(const double own_ns, time_calls(scenario, buffers, result.iterations));
  const CommCounters after = comm_.counters();
  PENSTOCK_ASSIGN(const std::uint64_t slowest_ps,
                  agree(static_cast<std::uint64_t>(own_ns * 1000), PENSTOCK_MAX));
  if (traffic != nullptr) {
    PENSTOCK_ASSIGN(const std::uint64_t written,
                    agree(after.pool_bytes_written - before.pool_bytes_written, PENSTOCK_SUM));
    PENSTOCK_ASSIGN(const std::uint64_t read,
                    agree(after.pool_bytes_read - before.pool_bytes_read, PENSTOCK_SUM));
    traffic->written = written / result.iterations;
    traffic->read = read / result.iterations;
  }
  result.time_us = static_cast<double>(slowest_ps) / 1e6;
  const std::uint64_t bytes =
      size_of_count(scenario.collective, scenario.count, scenario.ranks, scenario.type);
  if (slowest_ps > 0) {
    result.algbw = static_cast<double>(bytes) / (static_cast<double>(slowest_ps) / 1000);
  }
  result.busbw = result.algbw * bus_factor(scenario.collective, scenario.ranks);
  if (scenario.collective == Collective::barrier) return result;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < options_.checks; ++i) {
    buffers.fill(scenario.seed + 1000 + i);
    PENSTOCK_TRY(call(scenario, buffers, 1));
    wrong += buffers.count_wrong();
  }
  PENSTOCK_ASSIGN(result.wrong, agree(wrong, PENSTOCK_SUM));
  return result;
}

Result<std::vector<std::string>> Measure::processes() {
  Process own{};
  own.pid = platform_.self().pid;
  ::gethostname(own.host, sizeof own.host - 1);
  std::vector<Process> all(comm_.size());
  Call call;
  call.collective = Collective::all_gather;
  call.send = &own;
  call.recv = all.data();
  call.count = sizeof own;
  call.type = PENSTOCK_UINT8;
  PENSTOCK_TRY(comm_.run(call));
  std::vector<std::string> lines;
  for (Process& process : all) {
    process.host[sizeof process.host - 1] = '\0';
    lines.push_back(fmt::format("pid {} on {}", process.pid, process.host));
  }
  return lines;
}

}  // namespace penstock::tool
