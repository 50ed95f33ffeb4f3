#include <algorithm>
#include <cstring>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/select_conformance.h"

namespace penstock {
namespace {

// How large a case's quantities are: a handful (many equal scores), millicores and bytes, or up to
// the bound.
enum class Scale { small, usual, large };

std::int64_t quantity(SeededRandom& random, Scale scale) {
  if (random.one_in(9)) return 0;
  switch (scale) {
    case Scale::small:
      return random.between(0, 12);
    case Scale::usual:
      return random.one_in(2) ? random.between(0, 128) * 500
                              : random.between(0, std::int64_t{1} << 38);
    case Scale::large:
      break;
  }
  return random.one_in(8) ? PENSTOCK_MAX_QUANTITY : random.between(0, PENSTOCK_MAX_QUANTITY);
}

std::int64_t damaged_cell(SeededRandom& random) {
  constexpr std::int64_t kExtremes[] = {INT64_MIN, INT64_MAX, -1, PENSTOCK_MAX_QUANTITY + 1, 1001};
  return random.one_in(2) ? kExtremes[random.below(std::size(kExtremes))]
                          : static_cast<std::int64_t>(random.next());
}

void fill_columns(SeededRandom& random, Scale scale, HostTable* table) {
  const TableView view = table->view();
  const penstock_node_table& header = *table->header();
  for (std::uint32_t r = 0; r < header.n_resources; r++) {
    const bool unused = random.one_in(3);
    for (std::uint32_t row = 0; row < header.capacity; row++) {
      const std::int64_t allocatable = quantity(random, scale);
      view.column(view.allocatable, r)[row] = allocatable;
      if (unused) continue;
      // Mostly what fits, and now and then more than there is.
      const std::int64_t most = random.one_in(16) ? PENSTOCK_MAX_QUANTITY : allocatable;
      view.column(view.requested, r)[row] = random.between(0, most);
      view.column(view.scored, r)[row] = random.between(0, most);
    }
  }
  for (std::uint32_t row = 0; row < header.capacity; row++) {
    const std::uint64_t gpus = random.below(header.n_gpus + 1);
    const bool idle = random.one_in(3);
    for (std::uint32_t s = 0; s < gpus; s++)
      view.column(view.gpu, s)[row] = idle || random.one_in(3) ? 1000 : random.between(0, 20) * 50;
    if (idle && random.one_in(2))
      view.column(view.allocatable, 0)[row] = static_cast<std::int64_t>(gpus) * 1000;
  }
  const std::int64_t most = random.one_in(2) ? 3 : PENSTOCK_MAX_FREE_VALUE;
  const std::int64_t least = random.one_in(2) ? 0 : -most;
  for (std::uint32_t c = 0; c < header.n_free; c++)
    for (std::uint32_t row = 0; row < header.capacity; row++)
      view.column(view.free, c)[row] = random.between(least, most);
}

void fill_bits(SeededRandom& random, HostTable* table) {
  const TableView view = table->view();
  const penstock_node_table& header = *table->header();
  for (std::uint32_t b = 0; b < header.n_bits; b++) {
    const std::uint64_t density = b == PENSTOCK_BIT_NODE && !random.one_in(6) ? 0 : random.below(4);
    for (std::uint32_t w = 0; w < header.capacity / 64; w++) {
      const std::uint64_t word = random.next();
      const std::uint64_t words[] = {~std::uint64_t{0}, word, word & random.next(), 0};
      view.bit_column(b)[w] = words[density];
    }
  }
}

// Zones and racks, or nearly a domain for each row, and rows that have none.
void fill_domains(SeededRandom& random, HostTable* table) {
  const TableView view = table->view();
  const penstock_node_table& header = *table->header();
  for (std::uint32_t d = 0; d < header.n_domains; d++) {
    const std::int64_t domains[] = {1, 5, 63, 64, header.capacity};
    const std::int64_t n = std::min<std::int64_t>(domains[random.below(5)], header.capacity);
    const std::int64_t least = random.one_in(2) ? 0 : -1;
    for (std::uint32_t row = 0; row < header.capacity; row++)
      view.domain_column(d)[row] = static_cast<std::int32_t>(random.between(least, n - 1));
  }
  for (std::uint32_t c = 0; c < header.n_counts; c++) {
    const std::int64_t mosts[] = {0, 1, 4, 100, PENSTOCK_MAX_DOMAIN_COUNT};
    const std::int64_t most = mosts[random.below(5)];
    const std::int64_t least = most > 1 && random.one_in(2) ? most / 2 : 0;
    for (std::uint32_t domain = 0; domain < header.capacity; domain++)
      view.count_column(c)[domain] = static_cast<std::int32_t>(random.between(least, most));
  }
}

void damage_domains(SeededRandom& random, HostTable* table) {
  const TableView view = table->view();
  const penstock_node_table& header = *table->header();
  const auto damaged = [&] {
    const std::int32_t extremes[] = {INT32_MIN, INT32_MAX, -2,
                                     static_cast<std::int32_t>(header.capacity),
                                     PENSTOCK_MAX_DOMAIN_COUNT + 1};
    return extremes[random.below(std::size(extremes))];
  };
  const std::uint64_t n = random.below(header.capacity / 8);
  for (std::uint64_t i = 0; i < n; i++) {
    const std::uint64_t cell = random.below(header.capacity);
    if (header.n_domains > 0)
      view.domain_column(static_cast<std::uint32_t>(random.below(header.n_domains)))[cell] =
          damaged();
    if (header.n_counts > 0)
      view.count_column(static_cast<std::uint32_t>(random.below(header.n_counts)))[cell] =
          damaged();
  }
  if (header.n_domains == 0 || !random.one_in(3)) return;
  auto* logs = const_cast<double*>(view.logs);
  for (std::uint32_t i = 0; i <= header.capacity; i++) {
    const std::uint64_t bits = random.next();
    std::memcpy(&logs[i], &bits, sizeof bits);
  }
}

void damage(SeededRandom& random, HostTable* table) {
  const TableView view = table->view();
  const penstock_node_table& header = *table->header();
  const std::uint32_t counts[] = {header.n_resources, header.n_resources, header.n_resources,
                                  header.n_gpus, header.n_free};
  std::int64_t* const bases[] = {view.allocatable, view.requested, view.scored, view.gpu,
                                 view.free};
  const std::uint64_t n = 1 + random.below(header.capacity / 8);
  for (std::uint64_t i = 0; i < n; i++) {
    const std::uint64_t kind = random.below(std::size(bases));
    if (counts[kind] == 0) continue;
    const auto column = static_cast<std::uint32_t>(random.below(counts[kind]));
    view.column(bases[kind], column)[random.below(header.capacity)] = damaged_cell(random);
  }
}

HostTable make_table(SeededRandom& random, Scale scale, const SelectRules& rules) {
  // Few rows and boundaries of words and blocks matter more than sizes between them.
  constexpr std::uint32_t kRows[] = {0, 1, 2, 63, 64, 65, 127, 511, 512, 513, 576};
  auto rows = static_cast<std::uint32_t>(random.below(rules.max_rows + 1));
  if (random.one_in(2)) rows = std::min(kRows[random.below(std::size(kRows))], rules.max_rows);
  const auto spare = static_cast<std::uint32_t>(random.below(3) * 64);
  const auto up_to = [&](std::uint64_t least, std::uint64_t spread, std::uint32_t most) {
    return std::min(static_cast<std::uint32_t>(least + random.below(spread)), most);
  };
  const std::uint32_t resources = up_to(1, 6, rules.max_resources);
  const std::uint32_t gpus = up_to(0, 9, 8);
  const std::uint32_t bits = up_to(2, 10, rules.max_bits);
  const std::uint32_t free = up_to(0, 9, rules.max_free);
  const std::uint32_t domains = up_to(0, 4, 3);
  const std::uint32_t counts = up_to(0, 6, 5);
  HostTable table(rows, std::max(rows + spare, 1u), resources, gpus, bits, free, domains, counts);
  fill_columns(random, scale, &table);
  fill_bits(random, &table);
  fill_domains(random, &table);
  if (rules.damaged && random.one_in(5)) {
    damage(random, &table);
    damage_domains(random, &table);
  }
  return table;
}

// Fills the list of an operation; false when the table has no column for it.
bool fill_list(SeededRandom& random, const penstock_node_table& header, Scale scale,
               penstock_column_op* op) {
  const bool free_columns =
      op->op == PENSTOCK_SCORE_FEATURES || op->op == PENSTOCK_SCORE_GPU_CLUSTERING;
  const bool machine = op->op == PENSTOCK_SCORE_BEST_FIT || op->op == PENSTOCK_SCORE_DOT_PRODUCT;
  const bool weighted = op->op == PENSTOCK_SCORE_LEAST_ALLOCATED ||
                        op->op == PENSTOCK_SCORE_MOST_ALLOCATED || op->op == PENSTOCK_SCORE_RATIO;
  const std::uint32_t columns = free_columns ? header.n_free : header.n_resources;
  if (columns == 0) return false;
  op->n = static_cast<std::uint8_t>(1 + random.below(5));
  const bool one = op->op == PENSTOCK_SCORE_GPU_PACKING || op->op == PENSTOCK_SCORE_FGD;
  if (one) op->n = 1;
  if (!machine && !one && random.one_in(12)) op->n = 0;
  for (std::uint32_t i = 0; i < op->n; i++) {
    op->column[i] = static_cast<std::uint16_t>(random.below(columns));
    if (weighted)
      op->list_weight[i] = static_cast<std::uint16_t>(random.one_in(2) ? 1 : 1 + random.below(100));
    if (machine) op->scale[i] = 1 + quantity(random, scale) / 2;
  }
  if (op->op == PENSTOCK_SCORE_GPU_CLUSTERING)
    op->scale[0] = random.one_in(4) ? 1 + quantity(random, scale) / 2 : 8000;
  if ((weighted || op->op == PENSTOCK_SCORE_BALANCED) && random.one_in(2))
    op->skip_unasked = static_cast<std::uint32_t>(random.next()) & ((1u << op->n) - 1);
  return true;
}

bool has_group(const penstock_column_op& op) {
  return op.op == PENSTOCK_FILTER_BITS || op.op == PENSTOCK_SCORE_BITS ||
         op.op == PENSTOCK_FILTER_DOMAINS || op.op == PENSTOCK_SCORE_DOMAINS ||
         op.op == PENSTOCK_SCORE_SPREAD;
}

penstock_column_op make_op(SeededRandom& random, const penstock_node_table& header, Scale scale,
                           const SelectRules& rules, bool score) {
  const std::uint64_t filters[] = {PENSTOCK_FILTER_BITS, PENSTOCK_FILTER_FIT, PENSTOCK_FILTER_GPU,
                                   PENSTOCK_FILTER_ROW, PENSTOCK_FILTER_DOMAINS};
  penstock_column_op op = {};
  op.op = static_cast<std::uint8_t>(score ? PENSTOCK_SCORE_LEAST_ALLOCATED + random.below(13)
                                          : filters[random.below(5)]);
  const bool focused = rules.focus != 0 && PENSTOCK_COLUMN_OP_IS_SCORE(rules.focus) == score;
  if (focused && random.one_in(2)) op.op = static_cast<std::uint8_t>(rules.focus);
  if (((rules.opcodes >> op.op) & 1) == 0) return {};
  if (has_group(op)) {
    op.group = static_cast<std::uint8_t>(random.below(3));
  } else if (op.op != PENSTOCK_FILTER_GPU && op.op != PENSTOCK_FILTER_ROW &&
             !fill_list(random, header, scale, &op)) {
    return {};
  }
  if (score) {
    const std::int64_t most = random.one_in(4) ? PENSTOCK_MAX_WEIGHT : 3;
    op.weight = static_cast<std::int32_t>(random.one_in(2) ? 1 : random.between(-most, most));
    op.normalise = static_cast<std::uint8_t>(
        random.one_in(2) ? 0 : random.below(PENSTOCK_NORMALISE_SPREAD + 1));
    if (op.op == PENSTOCK_SCORE_SPREAD && random.one_in(2))
      op.normalise = PENSTOCK_NORMALISE_SPREAD;
    if (((rules.normalisations >> op.normalise) & 1) == 0) return {};
  }
  return op;
}

// What RATIO and FGD look up: a shape that rises, falls or jumps, and typical tasks with thresholds
// that are close together or far apart.
void fill_tables(SeededRandom& random, const penstock_node_table& header, Scale scale,
                 penstock_program* program) {
  const std::int64_t slope = random.between(-2, 2);
  for (std::int64_t i = 0; i < PENSTOCK_SHAPE_POINTS; i++)
    program->shape[i] = static_cast<std::uint8_t>(
        slope == 0 ? random.below(101) : std::clamp<std::int64_t>(slope * (i - 50) + 50, 0, 100));
  program->n_typical = static_cast<std::uint32_t>(random.below(6));
  for (std::uint32_t i = 0; i < program->n_typical; i++) {
    penstock_typical& typical = program->typical[i];
    typical.request = random.one_in(2) ? 0 : quantity(random, scale);
    typical.gpu_count = static_cast<std::uint32_t>(random.below(4));
    if (typical.gpu_count > 0)
      typical.gpu_milli = static_cast<std::uint32_t>(50 * (1 + random.below(20)));
    typical.model = static_cast<std::uint16_t>(random.one_in(2) ? 0 : random.below(header.n_bits));
    typical.weight = random.between(1, 1000);
  }
  const std::int64_t step = random.between(0, 20000);
  for (std::int64_t i = 0; i < PENSTOCK_FGD_THRESHOLDS; i++)
    program->threshold[i] = (i - 49) * step;
}

penstock_program make_program(SeededRandom& random, const penstock_node_table& header, Scale scale,
                              const SelectRules& rules) {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.tie = static_cast<std::uint8_t>(random.below(PENSTOCK_TIE_HASH + 1));
  program.gpu_pick = static_cast<std::uint8_t>(random.below(PENSTOCK_GPU_HASH + 1));
  while (program.tie > 0 && ((rules.ties >> program.tie) & 1) == 0) --program.tie;
  program.best = static_cast<std::uint8_t>(1 + random.below(PENSTOCK_MAX_BEST));
  program.best = static_cast<std::uint8_t>(std::min<std::uint32_t>(program.best, rules.max_best));
  program.seed = random.next();
  fill_tables(random, header, scale, &program);
  const std::uint64_t filters = random.below(4);
  const std::uint64_t scores = random.below(5);
  for (std::uint64_t i = 0; i < filters + scores; i++) {
    const penstock_column_op op = make_op(random, header, scale, rules, i >= filters);
    if (op.op == 0) continue;
    program.ops[program.n_ops++] = op;
    // Weights that could overflow are refused; the operation is left out then.
    std::uint64_t detail = 0;
    if (penstock_program_check(&program, &header, &detail) != PENSTOCK_OK)
      program.ops[--program.n_ops] = {};
  }
  const auto is_fgd = [](const penstock_column_op& op) { return op.op == PENSTOCK_SCORE_FGD; };
  if (random.one_in(2) && std::any_of(program.ops, program.ops + program.n_ops, is_fgd))
    program.gpu_pick = PENSTOCK_GPU_FGD;
  return program;
}

// Terms that the program's operations take.
void add_domain_terms(SeededRandom& random, const penstock_program& program,
                      const penstock_node_table& header, penstock_task* task) {
  if (header.n_counts == 0) return;
  const auto column = [&](std::uint32_t columns) {
    return static_cast<std::uint16_t>(random.below(columns));
  };
  const auto domain_column = [&] {
    return header.n_domains == 0 || random.one_in(3) ? std::uint16_t{PENSTOCK_ROW_DOMAIN}
                                                     : column(header.n_domains);
  };
  const std::uint64_t terms = random.one_in(6) ? 20 : random.below(6);
  for (std::uint64_t i = 0; i < terms && task->n_domain_terms < PENSTOCK_MAX_DOMAIN_TERMS; i++) {
    penstock_domain_term& term = task->domain_terms[task->n_domain_terms++];
    term.domain = domain_column();
    term.count = column(header.n_counts);
    term.nodes = column(header.n_counts);
    term.group = static_cast<std::uint8_t>(random.below(3));
    term.kind = static_cast<std::uint8_t>(random.below(4));
    term.weight = static_cast<std::int32_t>(random.one_in(8) ? random.between(-1000000, 1000000)
                                                             : random.between(1, 5));
    term.self = random.one_in(2);
    term.domains = static_cast<std::uint32_t>(random.one_in(2) ? random.below(header.capacity + 1)
                                                               : random.below(6));
    term.min_domains = static_cast<std::uint32_t>(random.below(4));
    if (penstock_task_check(task, &program, &header) != PENSTOCK_OK)
      task->domain_terms[--task->n_domain_terms] = {};
  }
  task->n_raises = static_cast<std::uint32_t>(random.below(4));
  for (std::uint32_t i = 0; i < task->n_raises; i++)
    task->raises[i] = {column(header.n_counts), domain_column(),
                       random.one_in(2) ? std::uint16_t{0} : column(header.n_bits), 0};
}

penstock_task make_task(SeededRandom& random, const penstock_program& program,
                        const penstock_node_table& header, Scale scale) {
  penstock_task task = {};
  for (std::uint32_t r = 0; r < header.n_resources; r++) {
    if (random.one_in(3)) continue;
    task.request[r] = quantity(random, scale) / (random.one_in(2) ? 1 : 16);
    task.scored_request[r] = random.one_in(2) ? task.request[r] : quantity(random, scale);
  }
  if (random.one_in(2)) {
    task.gpu_count = static_cast<std::uint32_t>(1 + random.below(random.one_in(2) ? 1 : 8));
    task.gpu_milli =
        static_cast<std::uint32_t>(random.one_in(2) ? 1000 : 50 * (1 + random.below(20)));
  }
  task.row = random.one_in(8) ? random.between(0, header.capacity) : -1;
  task.tie = random.one_in(2) ? random.below(1000) : random.next();
  task.klass = static_cast<std::uint32_t>(random.below(random.one_in(4) ? 16 : 4));
  task.n_terms = static_cast<std::uint32_t>(random.below(6));
  for (std::uint32_t i = 0; i < task.n_terms; i++)
    task.terms[i] = {static_cast<std::uint16_t>(random.below(header.n_bits)),
                     static_cast<std::uint8_t>(random.below(3)),
                     static_cast<std::uint8_t>(random.below(2)),
                     static_cast<std::int32_t>(random.between(-3, 100))};
  for (std::int64_t& feature : task.feature) feature = random.between(-256, 256);
  for (std::uint16_t& column : task.set_bits)
    if (header.n_bits > PENSTOCK_BIT_FIRST_FREE && random.one_in(4))
      column = static_cast<std::uint16_t>(PENSTOCK_BIT_FIRST_FREE +
                                          random.below(header.n_bits - PENSTOCK_BIT_FIRST_FREE));
  for (std::uint16_t& column : task.count)
    if (random.one_in(3)) column = static_cast<std::uint16_t>(random.below(header.n_free + 1));
  add_domain_terms(random, program, header, &task);
  return task;
}

}  // namespace

SelectCase make_select_case(std::uint64_t seed, const SelectRules& rules) {
  SeededRandom random(seed);
  const auto scale = static_cast<Scale>(random.below(3));
  SelectCase made = {make_table(random, scale, rules), {}, {}, random.one_in(2)};
  made.program = make_program(random, *made.table.header(), scale, rules);
  const std::uint64_t tasks = 1 + random.below(rules.max_tasks);
  for (std::uint64_t i = 0; i < tasks; i++) {
    penstock_task task = make_task(random, made.program, *made.table.header(), scale);
    if (!rules.gpus) task.gpu_count = task.gpu_milli = 0;
    if (!rules.domains) {
      std::fill(std::begin(task.domain_terms), std::end(task.domain_terms), penstock_domain_term{});
      std::fill(std::begin(task.raises), std::end(task.raises), penstock_raise{});
      task.n_domain_terms = task.n_raises = 0;
    }
    made.tasks.push_back(task);
  }
  return made;
}

std::vector<penstock_update> make_updates(std::uint64_t seed, const penstock_node_table& header) {
  SeededRandom random(seed);
  const std::uint32_t columns[] = {1,
                                   header.n_resources,
                                   header.n_resources,
                                   header.n_resources,
                                   header.n_gpus,
                                   header.n_bits,
                                   header.n_free,
                                   header.n_domains,
                                   header.n_counts};
  std::vector<penstock_update> updates(random.below(40));
  for (penstock_update& update : updates) {
    do {
      update.field = static_cast<std::uint16_t>(random.below(std::size(columns)));
    } while (columns[update.field] == 0);
    update.column = static_cast<std::uint32_t>(random.below(columns[update.field]));
    // A few rows, so that a list comes back to a cell.
    update.row = static_cast<std::uint32_t>(random.below(std::min(header.capacity, 4u)));
    update.value = random.between(0, 1000);
    if (update.field == PENSTOCK_UPDATE_ROWS) {
      update.row = 0;
      update.value = random.between(0, header.capacity);
    } else if (update.field == PENSTOCK_UPDATE_BIT) {
      update.value = random.between(0, 1);
    } else if (update.field == PENSTOCK_UPDATE_DOMAIN) {
      update.value = random.between(-1, std::int64_t{header.capacity} - 1);
    } else if (random.one_in(2)) {
      update.mode = PENSTOCK_UPDATE_ADD;
      // Sums that leave a GPU's bounds are likely, others go up more than down.
      update.value = random.between(update.field == PENSTOCK_UPDATE_GPU ? -60 : -30, 500);
      if (update.field == PENSTOCK_UPDATE_GPU) update.value /= 10;
    }
  }
  if (!updates.empty() && random.one_in(3)) {
    penstock_update& wrong = updates[random.below(updates.size())];
    const std::uint64_t what = random.below(5);
    if (what == 0) wrong.field = PENSTOCK_UPDATE_COUNT + 1;
    if (what == 1) wrong.mode = PENSTOCK_UPDATE_ADD + 1;
    if (what == 2) wrong.row = header.capacity;
    if (what == 3) wrong.column = PENSTOCK_MAX_BIT_COLUMNS;
    if (what == 4) wrong.value = wrong.mode == PENSTOCK_UPDATE_ADD ? INT64_MAX : INT64_MIN;
  }
  return updates;
}

}  // namespace penstock
