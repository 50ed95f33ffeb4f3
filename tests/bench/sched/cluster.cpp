#include "cluster.h"

#include <algorithm>

#include "penstock/base/status.h"

namespace penstock::bench {
namespace {

constexpr std::uint32_t kResources = 4;  // cpu in thousandths, memory, ephemeral storage, pods
constexpr std::uint32_t kZones = 10;
constexpr std::uint32_t kKinds = 32;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

enum Bit : std::uint16_t { kTainted = 2, kAvoided = 3, kDisk = 4, kBits = 8 };
enum Domain : std::uint16_t { kZone = 0, kHost = 1, kDomains = 2 };
enum Count : std::uint16_t { kNodesOfZone = 0, kFirstOfKind = 1, kCounts = 1 + 2 * kKinds };
enum Group : std::uint8_t {
  kUnschedulable = 1,
  kTaints = 2,
  kAffinity = 3,
  kPorts = 4,
  kPreferredAffinity = 6,
  kPreferredTaints = 7,
  kSpread = 8,
  kPodAffinity = 9,
  kPreferredSpread = 10,
  kPreferredPodAffinity = 11,
  kImages = 12
};

std::uint16_t zone_count(std::uint32_t kind) {
  return static_cast<std::uint16_t>(kFirstOfKind + 2 * (kind % kKinds));
}
std::uint16_t host_count(std::uint32_t kind) {
  return static_cast<std::uint16_t>(zone_count(kind) + 1);
}

}  // namespace

HostTable make_cluster(std::uint32_t nodes) {
  constexpr std::int64_t kSizes[][kResources] = {{32000, 128 * kGiB, 500 * kGiB, 250},
                                                 {64000, 256 * kGiB, 500 * kGiB, 250},
                                                 {96000, 768 * kGiB, 900 * kGiB, 250}};
  HostTable table(nodes, nodes, kResources, 0, kBits, 0, kDomains, kCounts);
  const TableView view = table.view();
  SeededRandom random(1);
  for (std::uint32_t row = 0; row < nodes; row++) {
    const auto& size = kSizes[random.below(std::size(kSizes))];
    for (std::uint32_t r = 0; r < kResources; r++) {
      view.column(view.allocatable, r)[row] = size[r];
      // Pods of the sizes that there are, as a cluster at work has them.
      const std::int64_t unit = r == 3 ? 1 : size[r] / 64;
      view.column(view.requested, r)[row] = unit * random.between(0, 25);
      view.column(view.scored, r)[row] = view.column(view.requested, r)[row];
    }
    table.set_bit(PENSTOCK_BIT_NODE, row);
    table.set_bit(PENSTOCK_BIT_UNSCHEDULABLE, row, random.one_in(20));
    table.set_bit(kTainted, row, random.one_in(50));
    table.set_bit(kAvoided, row, random.one_in(10));
    table.set_bit(kDisk, row, random.one_in(2));
    const auto zone = static_cast<std::int32_t>(row % kZones);
    view.domain_column(kZone)[row] = zone;
    view.domain_column(kHost)[row] = static_cast<std::int32_t>(row);
    view.count_column(kNodesOfZone)[zone]++;
  }
  return table;
}

penstock_program default_program(const penstock_node_table& header) {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.tie = PENSTOCK_TIE_LOWEST_ROW;
  program.best = 1;
  const auto add = [&program](std::uint8_t code, std::uint8_t group, std::int32_t weight,
                              std::uint8_t normalise) {
    penstock_column_op& op = program.ops[program.n_ops++];
    op.op = code;
    op.group = group;
    op.weight = weight;
    op.normalise = normalise;
    return &op;
  };
  add(PENSTOCK_FILTER_BITS, kUnschedulable, 0, 0);
  add(PENSTOCK_FILTER_ROW, 0, 0, 0);
  add(PENSTOCK_FILTER_BITS, kTaints, 0, 0);
  add(PENSTOCK_FILTER_BITS, kAffinity, 0, 0);
  add(PENSTOCK_FILTER_BITS, kPorts, 0, 0);
  penstock_column_op* fit = add(PENSTOCK_FILTER_FIT, 0, 0, 0);
  for (std::uint16_t r = 0; r < kResources; r++) fit->column[fit->n++] = r;
  add(PENSTOCK_FILTER_DOMAINS, kSpread, 0, 0);
  add(PENSTOCK_FILTER_DOMAINS, kPodAffinity, 0, 0);
  add(PENSTOCK_SCORE_BITS, kPreferredTaints, 3, PENSTOCK_NORMALISE_REVERSED);
  add(PENSTOCK_SCORE_BITS, kPreferredAffinity, 2, PENSTOCK_NORMALISE_DEFAULT);
  add(PENSTOCK_SCORE_SPREAD, kPreferredSpread, 2, PENSTOCK_NORMALISE_SPREAD);
  add(PENSTOCK_SCORE_DOMAINS, kPreferredPodAffinity, 2, PENSTOCK_NORMALISE_MIN_MAX_F64);
  penstock_column_op* least = add(PENSTOCK_SCORE_LEAST_ALLOCATED, 0, 1, 0);
  penstock_column_op* balanced = add(PENSTOCK_SCORE_BALANCED, 0, 1, 0);
  for (std::uint16_t r = 0; r < 2; r++) {
    least->list_weight[least->n] = 1;
    least->column[least->n++] = r;
    balanced->column[balanced->n++] = r;
  }
  add(PENSTOCK_SCORE_DOMAINS, kImages, 1, PENSTOCK_NORMALISE_NONE);
  std::uint64_t detail = 0;
  PENSTOCK_CHECK(penstock_program_check(&program, &header, &detail) == 0, "operation {}", detail);
  return program;
}

penstock_task make_task(const penstock_node_table& header, Shape shape, std::uint32_t kind) {
  penstock_task task = {};
  task.row = -1;
  task.request[0] = 50 + 5 * (kind % 64);  // 100,000 fit 1,000 nodes
  task.request[1] = (200 + 10 * static_cast<std::int64_t>(kind % 64)) << 20;
  task.request[3] = 1;
  std::copy_n(task.request, kResources, task.scored_request);
  task.terms[task.n_terms++] = {PENSTOCK_BIT_UNSCHEDULABLE, kUnschedulable, 1, 0};
  task.terms[task.n_terms++] = {kTainted, kTaints, 1, 0};
  task.terms[task.n_terms++] = {kAvoided, kPreferredTaints, 0, 1};

  const auto term = [&](std::uint16_t domain, std::uint8_t group, std::uint8_t what,
                        std::int32_t weight) {
    penstock_domain_term& made = task.domain_terms[task.n_domain_terms++];
    made.domain = domain;
    made.count = domain == kZone ? zone_count(kind) : host_count(kind);
    made.nodes = kNodesOfZone;
    made.group = group;
    made.kind = what;
    made.weight = weight;
    made.domains = domain == kZone ? kZones : header.rows;
    return &made;
  };
  const auto raise = [&](std::uint16_t domain) {
    task.raises[task.n_raises++] = {domain == kZone ? zone_count(kind) : host_count(kind), domain,
                                    0, 0};
  };
  switch (shape) {
    case Shape::plain:
      break;
    case Shape::replica:
      // The defaults of the system, which ask for no topology.
      term(kHost, kPreferredSpread, PENSTOCK_SPREAD_HOSTNAME, 3);
      term(kZone, kPreferredSpread, 0, 5);
      raise(kZone);
      raise(kHost);
      break;
    case Shape::zone_spread:
      term(kZone, kSpread, PENSTOCK_DOMAIN_SPREAD, 1)->self = 1;
      raise(kZone);
      break;
    case Shape::host_anti:
      term(kHost, kPodAffinity, PENSTOCK_DOMAIN_ABSENT, 1);
      raise(kHost);
      break;
    case Shape::zone_affinity:
      term(kZone, kPodAffinity, PENSTOCK_DOMAIN_PRESENT, 1)->self = 1;
      raise(kZone);
      break;
    case Shape::preferred:
      term(kZone, kPreferredPodAffinity, 0, 10);
      raise(kZone);
      break;
  }
  const penstock_program program = default_program(header);
  PENSTOCK_CHECK(penstock_task_check(&task, &program, &header) == 0, "a task of the benchmark");
  return task;
}

std::uint64_t scanned_bytes(const penstock_node_table& header, const penstock_task& task) {
  std::uint64_t bits = (1 + task.n_terms) * 1;
  std::uint64_t cells = 0;
  for (std::uint32_t r = 0; r < kResources; r++) cells += task.request[r] > 0 ? 2 : 0;
  cells += 2;  // cpu and memory as they are scored
  std::uint64_t domains = 0;
  for (std::uint32_t i = 0; i < task.n_domain_terms; i++)
    domains += task.domain_terms[i].domain == kZone ? 1 : 2;
  return header.rows * (cells * 8 + domains * 4) + header.rows * bits / 8;
}

}  // namespace penstock::bench
