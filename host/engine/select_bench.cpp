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

constexpr std::uint32_t kResources = 4;
constexpr std::uint32_t kZones = 3;

// Bit columns.
enum : std::uint16_t { kTainted = 2, kLabelled = 3, kPreferred = 4 };
// Count columns: of a service's tasks by zone and by row, of other tasks by zone, and what images
// are worth by row.
enum : std::uint16_t { kByZone = 0, kByRow = 1, kOthers = 2, kImages = 3 };
// Groups of terms.
enum : std::uint8_t {
  kFilterNodes = 0,
  kFilterTaints = 1,
  kFilterAffinity = 2,
  kFilterPorts = 3,
  kFilterSpread = 4,
  kFilterPods = 5,
  kScoreTaints = 6,
  kScoreAffinity = 7,
  kScoreSpread = 8,
  kScorePods = 9,
  kScoreImages = 10
};

// A cluster that is half full, of machines of a few sizes: cpu in thousandths, memory and scratch
// space in bytes, pods. One node in 20 is cordoned, one in 50 tainted, one in 4 carries the label
// that tasks prefer.
HostTable make_cluster(std::uint32_t rows) {
  constexpr std::int64_t kSizes[][kResources] = {
      {32000, std::int64_t{128} << 30, std::int64_t{1} << 40, 250},
      {64000, std::int64_t{256} << 30, std::int64_t{1} << 40, 250},
      {96000, std::int64_t{768} << 30, std::int64_t{2} << 40, 500},
      {128000, (std::int64_t{1} << 40) - 12345678, std::int64_t{2} << 40, 500}};
  HostTable table(rows, rows, kResources, 8, 8, 2, 1, 4);
  const TableView view = table.view();
  SeededRandom random(1);
  for (std::uint32_t row = 0; row < rows; row++) {
    const auto& size = kSizes[random.below(std::size(kSizes))];
    for (std::uint32_t r = 0; r < kResources; r++) {
      view.column(view.allocatable, r)[row] = size[r];
      const std::int64_t used = random.between(0, size[r] * 9 / 10);
      view.column(view.requested, r)[row] = used;
      view.column(view.scored, r)[row] = used;
    }
    view.column(view.free, 0)[row] = random.between(0, 5);
    table.set_bit(PENSTOCK_BIT_NODE, row);
    table.set_bit(PENSTOCK_BIT_UNSCHEDULABLE, row, random.one_in(20));
    table.set_bit(kTainted, row, random.one_in(50));
    table.set_bit(kLabelled, row, !random.one_in(10));
    table.set_bit(kPreferred, row, random.one_in(4));
    const auto zone = static_cast<std::int32_t>(random.below(kZones));
    view.domain_column(0)[row] = zone;
    const std::int32_t here = random.one_in(30) ? 1 : 0;
    view.count_column(kByRow)[row] = here;
    view.count_column(kByZone)[zone] += here;
    view.count_column(kOthers)[zone] += 1;
    view.count_column(kImages)[row] =
        random.one_in(3) ? static_cast<std::int32_t>(random.below(100)) : 0;
  }
  return table;
}

// What a policy has its tasks name.
struct Terms {
  bool spread;
  bool all;  // preferred labels, pods and images
};

struct Policy {
  const char* name;
  // Columns of 8 bytes that a decision reads, and of 4; those of bits and by zone are small.
  std::uint32_t columns;
  std::uint32_t count_columns;
  bool commit;
  Terms terms;
  penstock_program program;
};

penstock_column_op* add(penstock_program* program, std::uint8_t code, std::uint8_t n,
                        std::int32_t weight, std::uint8_t group = 0) {
  penstock_column_op& op = program->ops[program->n_ops++];
  op.op = code;
  op.n = n;
  op.weight = weight;
  op.group = group;
  for (std::uint8_t i = 0; i < n && code != PENSTOCK_SCORE_FEATURES; i++) op.column[i] = i;
  return &op;
}

void add_least_allocated(penstock_program* program) {
  penstock_column_op* least = add(program, PENSTOCK_SCORE_LEAST_ALLOCATED, 2, 1);
  least->list_weight[0] = least->list_weight[1] = 1;
}

penstock_program empty_program() {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.tie = PENSTOCK_TIE_ROTATING;
  program.best = 1;
  return program;
}

penstock_program small_program(bool balanced, bool normalised) {
  penstock_program program = empty_program();
  add(&program, PENSTOCK_FILTER_BITS, 0, 0, kFilterNodes);
  add(&program, PENSTOCK_FILTER_FIT, 3, 0);
  add_least_allocated(&program);
  add(&program, PENSTOCK_SCORE_BITS, 0, 2, kScoreAffinity);
  if (balanced) add(&program, PENSTOCK_SCORE_BALANCED, 2, 1);
  if (normalised)
    add(&program, PENSTOCK_SCORE_FEATURES, 1, 2)->normalise = PENSTOCK_NORMALISE_REVERSED;
  return program;
}

// What kube-scheduler runs by default.
penstock_program default_program() {
  penstock_program program = empty_program();
  for (const std::uint8_t group : {kFilterNodes, kFilterTaints, kFilterAffinity, kFilterPorts})
    add(&program, PENSTOCK_FILTER_BITS, 0, 0, group);
  add(&program, PENSTOCK_FILTER_FIT, kResources, 0);
  add(&program, PENSTOCK_FILTER_GPU, 0, 0);
  add(&program, PENSTOCK_FILTER_DOMAINS, 0, 0, kFilterSpread);
  add(&program, PENSTOCK_FILTER_DOMAINS, 0, 0, kFilterPods);
  const auto normalised = [&](std::uint8_t code, std::int32_t weight, std::uint8_t group,
                              std::uint8_t normalise) {
    add(&program, code, 0, weight, group)->normalise = normalise;
  };
  normalised(PENSTOCK_SCORE_BITS, 3, kScoreTaints, PENSTOCK_NORMALISE_REVERSED);
  normalised(PENSTOCK_SCORE_BITS, 2, kScoreAffinity, PENSTOCK_NORMALISE_DEFAULT);
  normalised(PENSTOCK_SCORE_SPREAD, 2, kScoreSpread, PENSTOCK_NORMALISE_SPREAD);
  normalised(PENSTOCK_SCORE_DOMAINS, 2, kScorePods, PENSTOCK_NORMALISE_MIN_MAX_F64);
  add_least_allocated(&program);
  add(&program, PENSTOCK_SCORE_BALANCED, 2, 1);
  add(&program, PENSTOCK_SCORE_DOMAINS, 0, 1, kScoreImages);
  return program;
}

penstock_domain_term domain_term(std::uint16_t domain, std::uint16_t count, std::uint8_t group,
                                 std::uint8_t kind, std::int32_t weight) {
  penstock_domain_term term = {};
  term.domain = domain;
  term.count = count;
  term.group = group;
  term.kind = kind;
  term.weight = weight;
  term.domains = domain == PENSTOCK_ROW_DOMAIN ? 0 : kZones;
  return term;
}

penstock_task make_task(std::uint64_t number, const Terms& terms) {
  // So small that millions of commits do not fill the cluster.
  constexpr std::int64_t kRequest[kResources] = {1, 1 << 10, 0, 1};
  penstock_task task = {};
  std::copy_n(kRequest, kResources, task.request);
  std::copy_n(kRequest, kResources, task.scored_request);
  task.row = -1;
  task.tie = number * 7919;
  task.n_terms = 4;
  task.terms[0] = {PENSTOCK_BIT_UNSCHEDULABLE, kFilterNodes, 1, 0};
  task.terms[1] = {kTainted, kFilterTaints, 1, 0};
  task.terms[2] = {kLabelled, kFilterAffinity, 0, 0};
  task.terms[3] = {kPreferred, kScoreAffinity, 0, 10};
  task.feature[0] = 1;
  if (terms.spread || terms.all) {
    task.domain_terms[task.n_domain_terms++] = domain_term(0, kByZone, kScoreSpread, 0, 5);
    task.domain_terms[task.n_domain_terms++] =
        domain_term(PENSTOCK_ROW_DOMAIN, kByRow, kScoreSpread, PENSTOCK_SPREAD_HOSTNAME, 3);
  }
  if (terms.all) {
    task.request[2] = 1;
    task.domain_terms[task.n_domain_terms++] = domain_term(0, kOthers, kScorePods, 0, -100);
    task.domain_terms[task.n_domain_terms++] =
        domain_term(PENSTOCK_ROW_DOMAIN, kImages, kScoreImages, 0, 1);
  } else if (terms.spread) {
    task.n_terms = 3;
  }
  return task;
}

// Nanoseconds of calls, each timed by itself.
struct Times {
  double least;
  double p50;
  double p99;
};
template <typename Function>
Times time_calls(double seconds, Function function) {
  Platform& platform = Platform::host();
  const std::uint64_t begin = platform.now_ns();
  const auto budget = static_cast<std::uint64_t>(seconds * 1e9);
  std::vector<std::uint64_t> samples;
  std::uint64_t now = begin;
  do {
    function(samples.size());
    const std::uint64_t end = platform.now_ns();
    samples.push_back(end - now);
    now = end;
  } while (now - begin < budget || samples.size() < 3);
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double part) {
    return static_cast<double>(
        samples[static_cast<std::size_t>(part * static_cast<double>(samples.size() - 1))]);
  };
  return {at(0), at(0.5), at(0.99)};
}

struct Line {
  std::uint32_t rows;
  const char* policy;
  const char* engine;
  Times ns;
  double read_ns;  // least time to read the columns
};

using Select = void (*)(const TableView&, const penstock_program&, const penstock_task&, bool,
                        penstock_result*);

void measure(std::uint32_t rows, const HostTable& cluster, const Policy& policy, double seconds,
             std::vector<Line>* lines) {
  std::uint64_t detail = 0;
  PENSTOCK_CHECK(penstock_program_check(&policy.program, cluster.header(), &detail) == PENSTOCK_OK,
                 "operation {}", detail);
  const penstock_task first = make_task(0, policy.terms);
  PENSTOCK_CHECK(penstock_task_check(&first, &policy.program, cluster.header()) == PENSTOCK_OK);
  std::uint64_t sink = 0;
  // The C library's search for a byte that is not there is as fast a reader as there is.
  const std::vector<char> memory(std::size_t{rows} *
                                 (policy.columns * 8 + policy.count_columns * 4));
  const double read_ns = time_calls(seconds / 4, [&](std::uint64_t) {
                           sink += std::memchr(memory.data(), 1, memory.size()) != nullptr;
                         }).least;
  const struct {
    const char* name;
    Select select;
  } engines[] = {{"scalar", scalar_select}, {"simd", simd_select}};
  for (const auto& engine : engines) {
    HostTable table = cluster;
    const TableView view = table.view();
    const Times ns = time_calls(seconds, [&](std::uint64_t number) {
      penstock_result result;
      engine.select(view, policy.program, make_task(number, policy.terms), policy.commit, &result);
      sink += static_cast<std::uint64_t>(result.row);
    });
    lines->push_back({rows, policy.name, engine.name, ns, read_ns});
  }
  // Not to be optimised away.
  if (sink == 1) fmt::print(stderr, " ");
}

int run(double seconds, bool json) {
  // Of fit: allocatable and requested of what the task asks for, which is scratch space only where
  // every score has terms; of least allocated: scored of two.
  const Policy policies[] = {
      {"fit+least+bits", 8, 0, false, {}, small_program(false, false)},
      {"fit+least+bits, commit", 8, 0, true, {}, small_program(false, false)},
      {"fit+least+bits+balanced", 8, 0, false, {}, small_program(true, false)},
      {"fit+least+bits+balanced+normalised", 9, 0, false, {}, small_program(true, true)},
      {"default, no spread", 8, 0, false, {}, default_program()},
      {"default", 8, 2, false, {true, false}, default_program()},
      {"default, commit", 8, 2, true, {true, false}, default_program()},
      {"default, every score has terms", 10, 3, false, {true, true}, default_program()}};
  std::vector<Line> lines;
  for (const std::uint32_t rows : {1000u, 5000u, 10000u, 50000u, 100000u}) {
    const HostTable cluster = make_cluster(rows);
    for (const Policy& policy : policies) measure(rows, cluster, policy, seconds, &lines);
  }
  if (json) {
    fmt::print("[");
    for (std::size_t i = 0; i < lines.size(); i++) {
      const Line& line = lines[i];
      fmt::print(
          "{}\n {{\"rows\": {}, \"policy\": \"{}\", \"engine\": \"{}\", \"min_us\": {:.3f}, "
          "\"p50_us\": {:.3f}, \"p99_us\": {:.3f}, \"read_us\": {:.3f}}}",
          i == 0 ? "" : ",", line.rows, line.policy, line.engine, line.ns.least / 1000,
          line.ns.p50 / 1000, line.ns.p99 / 1000, line.read_ns / 1000);
    }
    fmt::print("\n]\n");
    return 0;
  }
  fmt::print("{:>6}  {:<34} {:<6} {:>10} {:>10} {:>10} {:>9} {:>8} {:>11}\n", "rows", "policy",
             "engine", "min us", "p50 us", "p99 us", "read us", "x read", "decisions/s");
  for (const Line& line : lines)
    fmt::print("{:>6}  {:<34} {:<6} {:>10.1f} {:>10.1f} {:>10.1f} {:>9.1f} {:>8.1f} {:>11.0f}\n",
               line.rows, line.policy, line.engine, line.ns.least / 1000, line.ns.p50 / 1000,
               line.ns.p99 / 1000, line.read_ns / 1000, line.ns.least / line.read_ns,
               1e9 / line.ns.p50);
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  double seconds = 0.2;
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
