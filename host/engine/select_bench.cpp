// Decisions per second of SELECT on the host engines, beside the time in which one core merely
// reads the columns that the decision looks at: bench select [--json] [--seconds S]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "penstock/base/platform.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/simd_select.h"

namespace penstock {
namespace {

constexpr std::uint32_t kResources = 3;

// A cluster that is half full, of machines of a few sizes: cpu in thousandths, memory in bytes,
// pods. One node in 20 is cordoned, one in 4 carries the label that tasks prefer.
HostTable make_cluster(std::uint32_t rows) {
  constexpr std::int64_t kSizes[][kResources] = {
      {32000, std::int64_t{128} << 30, 1 << 30},
      {64000, std::int64_t{256} << 30, 1 << 30},
      {96000, std::int64_t{768} << 30, 1 << 30},
      {128000, (std::int64_t{1} << 40) - 12345678, 1 << 30}};
  HostTable table(rows, rows, kResources, 0, 4, 2);
  const TableView view = table.view();
  SeededRandom random(1);
  for (std::uint32_t row = 0; row < rows; row++) {
    const auto& size = kSizes[random.below(std::size(kSizes))];
    for (std::uint32_t r = 0; r < kResources; r++) {
      view.column(view.allocatable, r)[row] = size[r];
      const std::int64_t used = random.between(0, size[r]);
      view.column(view.requested, r)[row] = used;
      view.column(view.scored, r)[row] = used;
    }
    view.column(view.free, 0)[row] = random.between(0, 5);
    table.set_bit(PENSTOCK_BIT_NODE, row);
    table.set_bit(PENSTOCK_BIT_UNSCHEDULABLE, row, random.one_in(20));
    table.set_bit(2, row, random.one_in(4));
  }
  return table;
}

penstock_program make_program(bool balanced, bool normalised) {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.tie = PENSTOCK_TIE_ROTATING;
  program.best = 1;
  const auto add = [&](std::uint8_t code, std::uint8_t n, std::int32_t weight) {
    penstock_column_op& op = program.ops[program.n_ops++];
    op.op = code;
    op.n = n;
    op.weight = weight;
    for (std::uint8_t i = 0; i < n && code != PENSTOCK_SCORE_FEATURES; i++) op.column[i] = i;
    return &op;
  };
  add(PENSTOCK_FILTER_BITS, 0, 0);
  add(PENSTOCK_FILTER_FIT, kResources, 0);
  penstock_column_op* least = add(PENSTOCK_SCORE_LEAST_ALLOCATED, 2, 1);
  least->list_weight[0] = least->list_weight[1] = 1;
  add(PENSTOCK_SCORE_BITS, 0, 2)->group = 1;
  if (balanced) add(PENSTOCK_SCORE_BALANCED, 2, 1);
  if (normalised) add(PENSTOCK_SCORE_FEATURES, 1, 2)->normalise = PENSTOCK_NORMALISE_REVERSED;
  return program;
}

penstock_task make_task(std::uint64_t number) {
  penstock_task task = {};
  // So small that millions of commits do not fill the cluster.
  task.request[0] = task.scored_request[0] = 1;
  task.request[1] = task.scored_request[1] = 1 << 10;
  task.request[2] = task.scored_request[2] = 1;
  task.row = -1;
  task.tie = number * 7919;
  task.n_terms = 2;
  task.terms[0] = {PENSTOCK_BIT_UNSCHEDULABLE, 0, 1, 0};
  task.terms[1] = {2, 1, 0, 10};
  task.feature[0] = 1;
  return task;
}

// Nanoseconds of one call: the fastest of many batches, because what else the machine does only
// ever adds to a batch.
template <typename Function>
double time_calls(double seconds, Function function) {
  constexpr int kBatch = 4;
  Platform& platform = Platform::host();
  const std::uint64_t begin = platform.now_ns();
  const auto budget = static_cast<std::uint64_t>(seconds * 1e9);
  std::uint64_t fastest = UINT64_MAX;
  std::uint64_t number = 0;
  std::uint64_t now = begin;
  do {
    const std::uint64_t batch_begin = now;
    for (int i = 0; i < kBatch; i++) function(number++);
    now = platform.now_ns();
    fastest = std::min(fastest, now - batch_begin);
  } while (now - begin < budget);
  return static_cast<double>(fastest) / kBatch;
}

// Bytes of the columns of fit and least allocated: 3 of allocatable, 3 of requested, 2 of scored.
std::size_t bytes_looked_at(std::uint32_t rows) {
  return std::size_t{rows} * 8 * sizeof(std::int64_t);
}

struct Line {
  std::uint32_t rows;
  std::string policy;
  double scalar_us;
  double simd_us;
  double scan_us;
};

int run(double seconds, bool json) {
  const struct {
    const char* name;
    bool balanced;
    bool normalised;
    bool commit;
  } policies[] = {{"fit+least+bits", false, false, false},
                  {"fit+least+bits, commit", false, false, true},
                  {"fit+least+bits+balanced", true, false, false},
                  {"fit+least+bits+balanced+normalised", true, true, false}};
  std::vector<Line> lines;
  for (const std::uint32_t rows : {1000u, 10000u, 100000u}) {
    const HostTable cluster = make_cluster(rows);
    // The C library's search for a byte that is not there is as fast a reader as there is.
    const std::vector<char> memory(bytes_looked_at(rows));
    std::uint64_t sink = 0;
    const double scan_us = time_calls(seconds,
                                      [&](std::uint64_t) {
                                        sink +=
                                            std::memchr(memory.data(), 1, memory.size()) != nullptr;
                                      }) /
                           1000;
    for (const auto& policy : policies) {
      const penstock_program program = make_program(policy.balanced, policy.normalised);
      std::uint64_t detail = 0;
      PENSTOCK_CHECK(penstock_program_check(&program, cluster.header(), &detail) == PENSTOCK_OK,
                     "operation {}", detail);
      const auto measure = [&](auto select) {
        HostTable table = cluster;
        const TableView view = table.view();
        return time_calls(seconds,
                          [&](std::uint64_t number) {
                            penstock_result result;
                            select(view, program, make_task(number), policy.commit, &result);
                            sink += static_cast<std::uint64_t>(result.row);
                          }) /
               1000;
      };
      lines.push_back({rows, policy.name, measure(scalar_select), measure(simd_select), scan_us});
    }
    // Not to be optimised away.
    if (sink == 1) fmt::print(stderr, " ");
  }
  if (json) {
    fmt::print("[");
    for (std::size_t i = 0; i < lines.size(); i++)
      fmt::print(
          "{}\n {{\"rows\": {}, \"policy\": \"{}\", \"scalar_us\": {:.3f}, "
          "\"simd_us\": {:.3f}, \"scan_us\": {:.3f}}}",
          i == 0 ? "" : ",", lines[i].rows, lines[i].policy, lines[i].scalar_us, lines[i].simd_us,
          lines[i].scan_us);
    fmt::print("\n]\n");
    return 0;
  }
  fmt::print("{:>7}  {:<35} {:>12} {:>12} {:>12} {:>14}\n", "rows", "policy", "scalar us",
             "simd us", "scan us", "simd decisions/s");
  for (const Line& line : lines)
    fmt::print("{:>7}  {:<35} {:>12.1f} {:>12.1f} {:>12.1f} {:>14.0f}\n", line.rows, line.policy,
               line.scalar_us, line.simd_us, line.scan_us, 1e6 / line.simd_us);
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  double seconds = 0.3;
  bool json = false;
  for (int i = 1; i < argc; i++) {
    if (std::strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::strtod(argv[++i], nullptr);
    } else {
      fmt::print(stderr, "usage: {} [--json] [--seconds S]\n", argv[0]);
      return 2;
    }
  }
  return penstock::run(seconds, json);
}
