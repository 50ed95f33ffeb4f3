#include "penstock/sched/rescorer_case.h"

#include <algorithm>

#include "penstock/base/status.h"
#include "penstock/descriptor/descriptor.h"

namespace penstock {
namespace {

constexpr std::uint32_t kResources = 3;
constexpr std::uint32_t kBits = 8;
constexpr std::uint32_t kFree = 2;
constexpr std::uint32_t kCounts = 8;
constexpr std::uint32_t kGroups = 4;  // of domain terms

std::int32_t random_domain(SeededRandom& random, std::uint32_t column, std::uint32_t row,
                           std::uint32_t capacity) {
  if (random.one_in(12)) return -1;
  if (column == 0) return static_cast<std::int32_t>(random.below(4));       // zones
  if (column == 1) return static_cast<std::int32_t>(row);                   // host names
  return static_cast<std::int32_t>(random.below(std::min(capacity, 20u)));  // racks
}

HostTable make_table(SeededRandom& random) {
  const auto rows = static_cast<std::uint32_t>(1 + random.below(random.one_in(4) ? 200 : 70));
  const std::uint32_t capacity = rows + static_cast<std::uint32_t>(random.below(40));
  HostTable table(rows, capacity, kResources, 2, kBits, kFree, 3, kCounts);
  const TableView view = table.view();
  const std::int64_t sizes[] = {4, 16, 64000};
  const std::int64_t size = sizes[random.below(3)];
  for (std::uint32_t row = 0; row < view.header->capacity; row++) {
    for (std::uint32_t r = 0; r < kResources; r++) {
      const std::int64_t allocatable = random.one_in(15) ? 0 : size * random.between(1, 3);
      view.column(view.allocatable, r)[row] = allocatable;
      view.column(view.requested, r)[row] = random.between(0, allocatable);
      view.column(view.scored, r)[row] = random.between(0, allocatable);
    }
    for (std::uint32_t s = 0; s < 2; s++)
      view.column(view.gpu, s)[row] = random.one_in(3) ? random.between(0, 4) * 250 : 1000;
    for (std::uint32_t c = 0; c < kFree; c++)
      view.column(view.free, c)[row] = random.between(-2, 5);
    table.set_bit(PENSTOCK_BIT_NODE, row, !random.one_in(10));
    for (std::uint32_t b = 1; b < kBits; b++) table.set_bit(b, row, random.one_in(b));
    for (std::uint32_t d = 0; d < 3; d++)
      view.domain_column(d)[row] = random_domain(random, d, row, view.header->capacity);
  }
  const bool empty = random.one_in(2);
  for (std::uint32_t c = 0; c < kCounts; c++)
    for (std::uint32_t d = 0; d < view.header->capacity; d++)
      view.count_column(c)[d] =
          empty && !random.one_in(20) ? 0 : static_cast<std::int32_t>(random.below(4));
  return table;
}

penstock_column_op make_op(SeededRandom& random, bool score) {
  constexpr std::uint8_t kFilters[] = {PENSTOCK_FILTER_BITS,    PENSTOCK_FILTER_FIT,
                                       PENSTOCK_FILTER_GPU,     PENSTOCK_FILTER_ROW,
                                       PENSTOCK_FILTER_DOMAINS, PENSTOCK_FILTER_DOMAINS};
  constexpr std::uint8_t kScores[] = {PENSTOCK_SCORE_LEAST_ALLOCATED, PENSTOCK_SCORE_MOST_ALLOCATED,
                                      PENSTOCK_SCORE_BALANCED,        PENSTOCK_SCORE_BITS,
                                      PENSTOCK_SCORE_FEATURES,        PENSTOCK_SCORE_BEST_FIT,
                                      PENSTOCK_SCORE_GPU_PACKING,     PENSTOCK_SCORE_RATIO,
                                      PENSTOCK_SCORE_DOMAINS,         PENSTOCK_SCORE_SPREAD,
                                      PENSTOCK_SCORE_SPREAD,          PENSTOCK_SCORE_DOMAINS};
  penstock_column_op op = {};
  op.op = score ? kScores[random.below(std::size(kScores))]
                : kFilters[random.below(std::size(kFilters))];
  switch (op.op) {
    case PENSTOCK_FILTER_BITS:
    case PENSTOCK_SCORE_BITS:
    case PENSTOCK_FILTER_DOMAINS:
    case PENSTOCK_SCORE_DOMAINS:
    case PENSTOCK_SCORE_SPREAD:
      op.group = static_cast<std::uint8_t>(random.below(kGroups));
      break;
    case PENSTOCK_FILTER_GPU:
    case PENSTOCK_FILTER_ROW:
      break;
    case PENSTOCK_SCORE_GPU_PACKING:
      op.n = 1;
      break;
    case PENSTOCK_SCORE_FEATURES:
      op.n = kFree;
      for (std::uint16_t i = 0; i < op.n; i++) op.column[i] = i;
      break;
    default:
      op.n = static_cast<std::uint8_t>(random.between(1, kResources));
      for (std::uint16_t i = 0; i < op.n; i++) op.column[i] = i;
  }
  const bool weighted = op.op == PENSTOCK_SCORE_LEAST_ALLOCATED ||
                        op.op == PENSTOCK_SCORE_MOST_ALLOCATED || op.op == PENSTOCK_SCORE_RATIO;
  for (std::uint32_t i = 0; weighted && i < op.n; i++)
    op.list_weight[i] = static_cast<std::uint16_t>(random.between(1, 3));
  for (std::uint32_t i = 0; op.op == PENSTOCK_SCORE_BEST_FIT && i < op.n; i++) op.scale[i] = 64000;
  if ((weighted || op.op == PENSTOCK_SCORE_BALANCED) && random.one_in(2))
    op.skip_unasked = static_cast<std::uint32_t>(random.below(1u << op.n));
  if (!score) return op;
  op.weight = static_cast<std::int32_t>(random.between(random.one_in(4) ? -3 : 1, 3));
  if (op.op == PENSTOCK_SCORE_SPREAD && !random.one_in(4)) {
    op.normalise = PENSTOCK_NORMALISE_SPREAD;
  } else if (random.one_in(2)) {
    op.normalise = static_cast<std::uint8_t>(random.below(PENSTOCK_NORMALISE_SPREAD + 1));
  }
  return op;
}

penstock_program make_program(SeededRandom& random, const penstock_node_table& header) {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.tie = static_cast<std::uint8_t>(random.below(PENSTOCK_TIE_HASH + 1));
  program.gpu_pick = static_cast<std::uint8_t>(random.below(PENSTOCK_GPU_HASH + 1));
  program.best = static_cast<std::uint8_t>(random.one_in(2) ? 1 : 1 + random.below(8));
  program.seed = random.next();
  for (std::uint32_t u = 0; u < PENSTOCK_SHAPE_POINTS; u++)
    program.shape[u] = static_cast<std::uint8_t>(random.below(101));
  const std::uint64_t filters = random.below(5);
  const std::uint64_t scores = random.below(6);
  for (std::uint64_t i = 0; i < filters + scores; i++) {
    program.ops[program.n_ops++] = make_op(random, i >= filters);
    std::uint64_t detail = 0;
    if (penstock_program_check(&program, &header, &detail) != PENSTOCK_OK)
      program.ops[--program.n_ops] = {};
  }
  return program;
}

penstock_domain_term make_term(SeededRandom& random, const penstock_program& program,
                               const penstock_node_table& header) {
  penstock_domain_term term = {};
  const std::uint64_t domain = random.below(4);
  term.domain = static_cast<std::uint16_t>(domain == 3 ? PENSTOCK_ROW_DOMAIN : domain);
  term.count = static_cast<std::uint16_t>(random.below(kCounts));
  term.nodes = static_cast<std::uint16_t>(random.below(kCounts));
  term.group = static_cast<std::uint8_t>(random.below(kGroups));
  term.domains = domain == 0 ? 4 : domain == 2 ? std::min(header.capacity, 20u) : header.capacity;
  const auto used_by = [&](std::uint8_t op) {
    return std::any_of(program.ops, program.ops + program.n_ops, [&](const auto& candidate) {
      return candidate.op == op && candidate.group == term.group;
    });
  };
  term.weight = static_cast<std::int32_t>(random.between(1, 3));
  if (used_by(PENSTOCK_FILTER_DOMAINS)) {
    term.kind = static_cast<std::uint8_t>(random.below(PENSTOCK_DOMAIN_SPREAD + 1));
    if (term.kind != PENSTOCK_DOMAIN_ABSENT)
      term.self = static_cast<std::uint32_t>(random.below(2));
    if (term.kind == PENSTOCK_DOMAIN_SPREAD && random.one_in(3))
      term.min_domains = static_cast<std::uint32_t>(random.below(6));
  } else if (used_by(PENSTOCK_SCORE_SPREAD)) {
    term.kind = static_cast<std::uint8_t>(random.below(4));
  } else if (random.one_in(3)) {
    term.weight = -term.weight;
  }
  return term;
}

penstock_task make_task(SeededRandom& random, const penstock_program& program,
                        const penstock_node_table& header) {
  penstock_task task = {};
  task.row = random.one_in(10) ? static_cast<std::int64_t>(random.below(header.capacity)) : -1;
  for (std::uint32_t r = 0; r < kResources; r++) {
    task.request[r] = random.one_in(3) ? 0 : random.between(1, 3);
    task.scored_request[r] = random.one_in(3) ? 2 : task.request[r];
  }
  if (random.one_in(4)) {
    task.gpu_count = static_cast<std::uint32_t>(random.between(1, 2));
    task.gpu_milli = static_cast<std::uint32_t>(250 * random.between(1, 4));
  }
  task.n_terms = static_cast<std::uint32_t>(random.below(5));
  for (std::uint32_t i = 0; i < task.n_terms; i++)
    task.terms[i] = {static_cast<std::uint16_t>(random.below(kBits)),
                     static_cast<std::uint8_t>(random.below(kGroups)),
                     static_cast<std::uint8_t>(random.below(2)),
                     static_cast<std::int32_t>(random.between(-3, 20))};
  for (std::int64_t& feature : task.feature) feature = random.between(-2, 2);
  if (random.one_in(3)) task.set_bits[0] = static_cast<std::uint16_t>(2 + random.below(kBits - 2));
  if (random.one_in(3)) task.count[0] = static_cast<std::uint16_t>(random.below(kFree + 1));
  const std::uint64_t terms = random.below(6);
  for (std::uint64_t i = 0; i < terms; i++) {
    task.domain_terms[task.n_domain_terms++] = make_term(random, program, header);
    if (penstock_task_check(&task, &program, &header) != PENSTOCK_OK)
      task.domain_terms[--task.n_domain_terms] = {};
  }
  task.n_raises = static_cast<std::uint32_t>(random.below(5));
  for (std::uint32_t i = 0; i < task.n_raises; i++) {
    const std::uint64_t domain = random.below(4);
    task.raises[i].count = static_cast<std::uint16_t>(random.below(kCounts));
    task.raises[i].domain = static_cast<std::uint16_t>(domain == 3 ? PENSTOCK_ROW_DOMAIN : domain);
    task.raises[i].eligible = static_cast<std::uint16_t>(random.one_in(2) ? 0 : 3);
  }
  return task;
}

}  // namespace

RescorerCase make_rescorer_case(std::uint64_t seed) {
  SeededRandom random(seed);
  HostTable table = make_table(random);
  const penstock_program program = make_program(random, *table.header());
  RescorerCase made = {std::move(table), program, {}, {}};
  const std::uint64_t tasks = 1 + random.below(4);
  for (std::uint64_t i = 0; i < tasks; i++) {
    made.tasks.push_back(make_task(random, program, *made.table.header()));
    PENSTOCK_CHECK(
        penstock_task_check(&made.tasks.back(), &program, made.table.header()) == PENSTOCK_OK,
        "task {} of the case with seed {}", i, seed);
  }
  made.options.classes = random.one_in(4) ? 2 : 64;
  made.options.scan_first = random.one_in(4);
  if (random.one_in(4)) made.options.limits.groups = 3;
  const std::uint32_t narrow[] = {0, 4, 20, 64, 4096};
  made.options.limits.narrow_domains = narrow[random.below(std::size(narrow))];
  return made;
}

std::vector<penstock_update> make_rescorer_change(SeededRandom& random,
                                                  const penstock_node_table& header) {
  const auto row = static_cast<std::uint32_t>(random.below(header.capacity));
  std::vector<penstock_update> updates;
  const auto set = [&](std::uint16_t field, std::uint64_t column, std::int64_t value) {
    updates.push_back(
        {field, PENSTOCK_UPDATE_SET, static_cast<std::uint32_t>(column), row, 0, value});
  };
  switch (random.below(7)) {
    case 0:
      set(PENSTOCK_UPDATE_BIT, random.below(header.n_bits),
          static_cast<std::int64_t>(random.below(2)));
      break;
    case 1:
      set(PENSTOCK_UPDATE_BIT, PENSTOCK_BIT_NODE, static_cast<std::int64_t>(random.below(2)));
      set(PENSTOCK_UPDATE_REQUESTED, random.below(header.n_resources), random.between(0, 20));
      break;
    case 2: {
      if (header.n_domains == 0) break;
      const auto column = static_cast<std::uint32_t>(random.below(header.n_domains));
      set(PENSTOCK_UPDATE_DOMAIN, column, random_domain(random, column, row, header.capacity));
      break;
    }
    case 3:
      if (header.n_counts == 0) break;
      set(PENSTOCK_UPDATE_COUNT, random.below(header.n_counts), random.between(0, 3));
      if (random.one_in(2)) updates.back().row = static_cast<std::uint32_t>(random.below(4));
      break;
    case 4:
      for (std::uint32_t r = 0; r < header.n_resources; r++)
        set(PENSTOCK_UPDATE_ALLOCATABLE, r, random.between(0, 100));
      break;
    case 5:
      if (header.n_free > 0)
        set(PENSTOCK_UPDATE_FREE, random.below(header.n_free), random.between(-3, 9));
      if (header.n_gpus > 0)
        set(PENSTOCK_UPDATE_GPU, random.below(header.n_gpus), random.between(0, 4) * 250);
      break;
    default:
      if (!random.one_in(8)) break;
      set(PENSTOCK_UPDATE_ROWS, 0, random.between(0, header.capacity));
      updates.back().row = 0;
  }
  return updates;
}

}  // namespace penstock
