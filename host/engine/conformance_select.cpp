#include <algorithm>
#include <cstring>
#include <iterator>

#include "penstock/engine/conformance_rig.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/update.h"

namespace penstock::conformance {
namespace {

std::uint64_t line_up(std::uint64_t offset) { return (offset + 63) / 64 * 64; }

// Where the operands of one SELECT or UPDATE lie, one line apart.
struct Places {
  std::uint64_t table = 64, program, tasks, results, end;
  Places(std::uint64_t table_bytes, std::uint64_t list_bytes, std::uint64_t result_bytes) {
    program = line_up(table + table_bytes) + 64;
    tasks = program + line_up(sizeof(penstock_program)) + 64;
    results = tasks + line_up(list_bytes) + 64;
    end = results + line_up(result_bytes) + 64;
  }
};

void store(Rig& rig, std::uint64_t offset, const void* data, std::uint64_t bytes) {
  if (bytes == 0) return;  // an empty list has no address
  std::memcpy(rig.memory() + offset, data, bytes);
  rig.publish(offset, bytes);
}

// Compares the table in the arena with the expected one.
std::string table_difference(Rig& rig, std::uint64_t offset, const HostTable& expected) {
  const std::uint64_t bytes = expected.header()->bytes;
  rig.observe(offset, bytes);
  if (std::memcmp(rig.memory() + offset, expected.header(), bytes) == 0) return {};
  HostTable actual = expected;
  std::memcpy(static_cast<void*>(actual.header()), rig.memory() + offset, bytes);
  return difference(expected, actual);
}

enum class Ran { compared, refused };

Ran run_select(Rig& rig, std::uint64_t seed, const SelectRules& rules, Tally* tally) {
  SelectCase c = make_select_case(seed, rules);
  // An engine may keep a table, and knows by the generation that this is another one.
  c.table.header()->generation = seed << 8;
  const std::uint64_t n = c.tasks.size();
  const Places at(c.table.header()->bytes, n * sizeof(penstock_task), n * sizeof(penstock_result));
  if (at.end > rig.bytes()) return Ran::refused;
  store(rig, at.table, c.table.header(), c.table.header()->bytes);
  store(rig, at.program, &c.program, sizeof(c.program));
  store(rig, at.tasks, c.tasks.data(), n * sizeof(penstock_task));
  std::memset(rig.memory() + at.results, 0xa5, n * sizeof(penstock_result) + 64);
  rig.publish(at.results, n * sizeof(penstock_result) + 64);

  penstock_descriptor d = make_descriptor(PENSTOCK_OP_SELECT, 3, 1);
  d.flags = c.commit ? PENSTOCK_FLAG_COMMIT : 0;
  d.count = n;
  d.src[0] = rig.address(at.table);
  d.src[1] = rig.address(at.program);
  d.src[2] = rig.address(at.tasks);
  d.dst[0] = rig.address(at.results);
  const Result<penstock_completion> done = rig.run(d);
  if (!done.ok()) {
    tally->fail(done.status().message());
    return Ran::compared;
  }
  if (done.value().status == PENSTOCK_UNSUPPORTED) {
    tally->expect(table_difference(rig, at.table, c.table).empty(),
                  fmt::format("seed {}: a refused SELECT changed the table", seed));
    return Ran::refused;
  }
  tally->expect(done.value().status == PENSTOCK_OK,
                fmt::format("seed {}: {}", seed, describe(done.value())));
  rig.observe(at.results, n * sizeof(penstock_result) + 64);
  for (std::uint64_t i = 0; i < n; ++i) {
    penstock_result expected, actual;
    scalar_select(c.table.view(), c.program, c.tasks[i], c.commit, &expected);
    std::memcpy(&actual, rig.memory() + at.results + i * sizeof(actual), sizeof(actual));
    const std::string wrong = difference(expected, actual);
    tally->expect(wrong.empty(), fmt::format("seed {}, task {}: {}", seed, i, wrong));
  }
  for (std::uint64_t i = 0; i < 64; ++i)
    if (rig.memory()[at.results + n * sizeof(penstock_result) + i] != std::byte{0xa5})
      tally->fail(fmt::format("seed {}: bytes after the results were changed", seed));
  const std::string wrong = table_difference(rig, at.table, c.table);
  tally->expect(wrong.empty(), fmt::format("seed {}, table: {}", seed, wrong));
  return Ran::compared;
}

void run_update(Rig& rig, std::uint64_t seed, const SelectRules& rules, Tally* tally) {
  SelectCase c = make_select_case(seed, rules);
  const std::vector<penstock_update> updates = make_updates(seed, *c.table.header());
  const std::uint64_t bytes = updates.size() * sizeof(penstock_update);
  const Places at(c.table.header()->bytes, bytes, 0);
  if (at.end > rig.bytes()) return;
  store(rig, at.table, c.table.header(), c.table.header()->bytes);
  store(rig, at.tasks, updates.data(), bytes);
  penstock_descriptor d = make_descriptor(PENSTOCK_OP_UPDATE, 2, 0);
  d.count = updates.size();
  d.src[0] = rig.address(at.table);
  d.src[1] = rig.address(at.tasks);
  const Result<penstock_completion> done = rig.run(d);
  if (!done.ok()) return tally->fail(done.status().message());
  std::uint64_t bad_index = 0;
  const std::uint32_t status =
      d.count == 0 ? 0 : apply_updates(c.table.view(), updates.data(), updates.size(), &bad_index);
  const penstock_completion& got = done.value();
  tally->expect(
      got.status == status && (status == PENSTOCK_OK ||
                               (got.field == PENSTOCK_FIELD_UPDATE && got.detail == bad_index)),
      fmt::format("seed {}: expected {} at {}, got {}", seed, penstock_status_name(status),
                  bad_index, describe(got)));
  const std::string wrong = table_difference(rig, at.table, c.table);
  tally->expect(wrong.empty(), fmt::format("seed {}, table: {}", seed, wrong));
}

constexpr const char* kNormalisations[] = {"none",    "default",     "reversed",
                                           "min_max", "min_max_f64", "spread"};
constexpr const char* kTies[] = {"lowest_row", "rotating", "hash"};
static_assert(std::size(kNormalisations) == PENSTOCK_NORMALISE_SPREAD + 1, "a name for each");
static_assert(std::size(kTies) == PENSTOCK_TIE_HASH + 1, "a name for each");

// What an engine takes, so that few cases are refused.
SelectRules rules_for(const Rig& rig) {
  const Capabilities& caps = rig.capabilities();
  SelectRules rules;
  if (rig.options().quick) rules.max_rows = 130;
  rules.max_rows = std::min(rules.max_rows, std::max(caps.max_rows, 1u));
  rules.opcodes = caps.select.operations;
  rules.normalisations = caps.select.normalisations;
  rules.ties = caps.select.ties;
  rules.max_best = caps.select.max_best;
  rules.max_resources = std::min(rules.max_resources, caps.select.max_resources);
  rules.max_bits = std::min(rules.max_bits, caps.select.max_bits);
  rules.max_free = std::min(rules.max_free, caps.select.max_free);
  rules.gpus = caps.select.gpus;
  rules.domains = caps.select.domains;
  return rules;
}

// One thing that a program may have: which cases are about it, and whether the engine has it.
struct Aspect {
  std::string operation, name;
  std::uint64_t seed;
  bool able;
  SelectRules rules;
  bool (*holds)(const SelectCase& made, std::uint32_t value);
  std::uint32_t value;
};

bool has_operation(const SelectCase& made, std::uint32_t op) {
  return std::any_of(made.program.ops, made.program.ops + made.program.n_ops,
                     [op](const penstock_column_op& o) { return o.op == op; });
}
bool has_normalisation(const SelectCase& made, std::uint32_t normalise) {
  return std::any_of(made.program.ops, made.program.ops + made.program.n_ops,
                     [normalise](const penstock_column_op& o) {
                       return PENSTOCK_COLUMN_OP_IS_SCORE(o.op) && o.normalise == normalise;
                     });
}
bool has_tie(const SelectCase& made, std::uint32_t tie) { return made.program.tie == tie; }

// Enough cases that are about it; one that is beyond the engine is tried, and has to be refused.
void check_aspect(Rig& rig, const Aspect& aspect, std::vector<ConformanceRow>* rows) {
  const int wanted = !aspect.able ? 1 : rig.options().quick ? 3 : 25;
  constexpr int kMostTries = 2000;
  Tally tally;
  int compared = 0, refused = 0;
  for (int i = 0; i < kMostTries && compared < wanted && refused < wanted * 4; ++i) {
    if (tally.failed()) break;
    const std::uint64_t seed = aspect.seed * 1'000'003 + static_cast<std::uint64_t>(i);
    if (!aspect.holds(make_select_case(seed, aspect.rules), aspect.value)) continue;
    ++(run_select(rig, seed, aspect.rules, &tally) == Ran::refused ? refused : compared);
  }
  if (!aspect.able && compared != 0) tally.fail("it runs, although the engine says that it cannot");
  if (compared != 0 || tally.failed())
    rows->push_back(tally.row(aspect.operation, aspect.name));
  else
    rows->push_back(unsupported_row(
        aspect.operation, aspect.name,
        aspect.able ? "every program was refused" : "the engine's SELECT does not have it"));
}

void check_aspects(Rig& rig, std::vector<ConformanceRow>* rows) {
  const SelectCapabilities& can = rig.capabilities().select;
  const SelectRules able = rules_for(rig);
  std::uint64_t seed = rig.options().seed * 131;
  for (std::uint32_t op = 1; op < 64; ++op) {
    const char* name = penstock_column_opcode_name(op);
    if (name[0] == '?') continue;
    Aspect aspect{PENSTOCK_COLUMN_OP_IS_SCORE(op) ? "SELECT scores" : "SELECT filters",
                  name,
                  ++seed,
                  (can.operations >> op & 1) != 0,
                  able,
                  has_operation,
                  op};
    aspect.rules.focus = op;
    aspect.rules.opcodes |= std::uint64_t{1} << op;
    check_aspect(rig, aspect, rows);
  }
  for (std::uint32_t n = 0; n <= PENSTOCK_NORMALISE_SPREAD; ++n) {
    Aspect aspect{"SELECT normalise",
                  kNormalisations[n],
                  ++seed,
                  (can.normalisations >> n & 1) != 0,
                  able,
                  has_normalisation,
                  n};
    aspect.rules.normalisations |= 1u << n;
    if (n == PENSTOCK_NORMALISE_SPREAD && (able.opcodes >> PENSTOCK_SCORE_SPREAD & 1) != 0)
      aspect.rules.focus = PENSTOCK_SCORE_SPREAD;
    check_aspect(rig, aspect, rows);
  }
  for (std::uint32_t tie = 0; tie <= PENSTOCK_TIE_HASH; ++tie) {
    Aspect aspect{"SELECT ties", kTies[tie], ++seed, (can.ties >> tie & 1) != 0,
                  able,          has_tie,    tie};
    aspect.rules.ties |= 1u << tie;
    check_aspect(rig, aspect, rows);
  }
}

// Tasks of what the engine does not do. Raises are of commits.
void check_tasks(Rig& rig, std::vector<ConformanceRow>* rows) {
  for (const bool gpus : {true, false}) {
    SelectRules rules = rules_for(rig);
    (gpus ? rules.gpus : rules.domains) = true;
    const Aspect aspect{"SELECT tasks",
                        gpus ? "gpus" : "domains",
                        rig.options().seed * 137 + (gpus ? 1 : 0),
                        gpus ? rig.capabilities().select.gpus : rig.capabilities().select.domains,
                        rules,
                        [](const SelectCase& made, std::uint32_t of_gpus) {
                          if (of_gpus == 0 && !made.commit) return false;
                          return std::any_of(made.tasks.begin(), made.tasks.end(),
                                             [of_gpus](const penstock_task& task) {
                                               return of_gpus != 0 ? task.gpu_count != 0
                                                                   : task.n_raises != 0;
                                             });
                        },
                        gpus ? 1u : 0u};
    check_aspect(rig, aspect, rows);
  }
}

}  // namespace

void check_select(Rig& rig, std::vector<ConformanceRow>* rows) {
  const Capabilities& caps = rig.capabilities();
  const bool select = (caps.opcodes >> PENSTOCK_OP_SELECT & 1) != 0 && caps.max_rows > 0;
  const bool update = (caps.opcodes >> PENSTOCK_OP_UPDATE & 1) != 0 && caps.max_rows > 0;
  const int cases = rig.options().quick ? 25 : 250;
  const SelectRules rules = rules_for(rig);
  if (select) {
    Tally tally;
    int refused = 0;
    for (int i = 0; i < cases && !tally.failed(); ++i)
      if (run_select(rig, rig.options().seed * 10007 + static_cast<std::uint64_t>(i), rules,
                     &tally) == Ran::refused)
        ++refused;
    if (refused == cases && !tally.failed())
      rows->push_back(unsupported_row("SELECT", "", "every program was refused"));
    else
      rows->push_back(tally.row("SELECT"));
    check_aspects(rig, rows);
    check_tasks(rig, rows);
  } else {
    rows->push_back(unsupported_row("SELECT", "", "the engine has no SELECT"));
  }
  if (update) {
    Tally tally;
    for (int i = 0; i < cases && !tally.failed(); ++i)
      run_update(rig, rig.options().seed * 20011 + static_cast<std::uint64_t>(i), rules, &tally);
    rows->push_back(tally.row("UPDATE"));
  } else {
    rows->push_back(unsupported_row("UPDATE", "", "the engine has no UPDATE"));
  }
}

}  // namespace penstock::conformance
