// Malformed tables, programs and tasks, and bus errors: the answer of the host's engines, and
// memory as it was.
#include <algorithm>
#include <functional>

#include "penstock/rtl/score/score_test_rig.h"

namespace penstock::rtl {
namespace {

// A small case that the card places: two filters, five scores, three tasks.
SelectCase sound_case(std::uint64_t seed, bool commit = true) {
  HostTable table(100, 128, 4, 2, 12, 3, 2, 5);
  SeededRandom random(seed);
  const TableView view = table.view();
  for (std::uint32_t row = 0; row < 128; ++row) {
    for (std::uint32_t r = 0; r < 4; ++r) {
      view.column(view.allocatable, r)[row] = random.between(1, 1000);
      view.column(view.requested, r)[row] = random.between(0, 300);
      view.column(view.scored, r)[row] = random.between(0, 300);
    }
    for (std::uint32_t c = 0; c < 3; ++c) view.column(view.free, c)[row] = random.between(-50, 50);
    for (std::uint32_t b = 0; b < 12; ++b) table.set_bit(b, row, b == 0 || random.one_in(2));
  }
  SelectCase c{std::move(table), {}, {}, commit};
  penstock_program& p = c.program;
  p.magic = PENSTOCK_PROGRAM_MAGIC;
  p.version = PENSTOCK_PROGRAM_VERSION;
  p.best = 3;
  p.tie = PENSTOCK_TIE_ROTATING;
  const auto add = [&](std::uint8_t op, std::uint8_t n, std::int32_t weight, std::uint8_t group,
                       std::uint8_t normalise) -> penstock_column_op& {
    penstock_column_op& out = p.ops[p.n_ops++];
    out.op = op;
    out.n = n;
    out.weight = weight;
    out.group = group;
    out.normalise = normalise;
    for (std::uint8_t i = 0; i < n; ++i) out.column[i] = i;
    return out;
  };
  add(PENSTOCK_FILTER_BITS, 0, 0, 1, 0);
  add(PENSTOCK_FILTER_FIT, 4, 0, 0, 0);
  add(PENSTOCK_FILTER_DOMAINS, 0, 0, 7, 0);
  penstock_column_op& least = add(PENSTOCK_SCORE_LEAST_ALLOCATED, 3, 2, 0, 0);
  std::fill_n(least.list_weight, 3, std::uint16_t{5});
  add(PENSTOCK_SCORE_BITS, 0, 3, 2, PENSTOCK_NORMALISE_REVERSED);
  add(PENSTOCK_SCORE_BALANCED, 2, 1, 0, 0);
  add(PENSTOCK_SCORE_FEATURES, 3, 1, 0, PENSTOCK_NORMALISE_MIN_MAX);
  add(PENSTOCK_SCORE_SPREAD, 0, 1, 9, PENSTOCK_NORMALISE_SPREAD);
  add(PENSTOCK_SCORE_DOMAINS, 0, 1, 8, PENSTOCK_NORMALISE_REVERSED);
  for (int i = 0; i < 3; ++i) {
    penstock_task task{};
    for (int r = 0; r < 4; ++r) task.request[r] = task.scored_request[r] = random.between(0, 60);
    task.row = -1;
    task.tie = random.next();
    task.n_terms = 4;
    for (std::uint16_t t = 0; t < 4; ++t)
      task.terms[t] = {static_cast<std::uint16_t>(t + 1), static_cast<std::uint8_t>(t < 1 ? 1 : 2),
                       static_cast<std::uint8_t>(t & 1), 10 * t};
    for (int f = 0; f < 8; ++f) task.feature[f] = random.between(-20, 20);
    task.set_bits[0] = 5;
    task.set_bits[3] = 6;
    task.count[0] = 2;
    task.count[2] = 2;
    c.tasks.push_back(task);
  }
  return c;
}

constexpr std::uint64_t kOperations =
    1u << PENSTOCK_FILTER_BITS | 1u << PENSTOCK_FILTER_FIT | 1u << PENSTOCK_FILTER_GPU |
    1u << PENSTOCK_FILTER_ROW | 1u << PENSTOCK_FILTER_DOMAINS |
    UINT64_C(1) << PENSTOCK_SCORE_LEAST_ALLOCATED | UINT64_C(1) << PENSTOCK_SCORE_MOST_ALLOCATED |
    UINT64_C(1) << PENSTOCK_SCORE_BALANCED | UINT64_C(1) << PENSTOCK_SCORE_BITS |
    UINT64_C(1) << PENSTOCK_SCORE_FEATURES | UINT64_C(1) << PENSTOCK_SCORE_DOMAINS |
    UINT64_C(1) << PENSTOCK_SCORE_SPREAD;

bool beyond_the_card(const penstock_column_op& op) {
  return (kOperations >> op.op & 1) == 0 || (op.op == PENSTOCK_SCORE_BALANCED && op.n > 2) ||
         (op.op == PENSTOCK_SCORE_FEATURES && op.normalise == PENSTOCK_NORMALISE_MIN_MAX_F64);
}

bool beyond_the_card(const penstock_program& program, const penstock_task& task, bool commit) {
  if (task.gpu_count > 0 || (commit && task.n_raises > 0)) return true;
  for (std::uint32_t i = 0; i < task.n_domain_terms; ++i)
    for (std::uint32_t o = 0; o < program.n_ops; ++o)
      if ((program.ops[o].op == PENSTOCK_FILTER_DOMAINS ||
           program.ops[o].op == PENSTOCK_SCORE_DOMAINS ||
           program.ops[o].op == PENSTOCK_SCORE_SPREAD) &&
          program.ops[o].group == task.domain_terms[i].group)
        return true;
  return false;
}

// The answer in the order in which the host's engines look, with what the card lacks.
Outcome expected(const Rig& rig, const Job& job, const SelectCase& c) {
  const auto allowed = [&](std::uint64_t offset, std::uint64_t bytes, bool write) {
    const std::uint64_t begin = write ? rig.write_begin : 0;
    const std::uint64_t end = write ? rig.write_end : rig.read_end;
    return offset >= begin && offset <= end && bytes <= end - offset;
  };
  const auto at = [](std::uint64_t offset) { return kPool + offset; };
  const penstock_node_table& header = *c.table.header();
  const Outcome no_table{PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_TABLE, at(job.table)};
  if (!allowed(job.table, sizeof(header), false)) return no_table;
  std::uint32_t status = penstock_node_table_check(&header, header.bytes);
  if (status != PENSTOCK_OK) return {status, PENSTOCK_FIELD_TABLE, at(job.table)};
  if (!allowed(job.table, header.bytes, false) ||
      (job.commit && !allowed(job.table, header.bytes, true)))
    return no_table;
  if (header.rows > kRows || header.n_resources > 8 || header.n_free > 8)
    return {PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_TABLE, at(job.table)};
  if (!allowed(job.program, sizeof(penstock_program), false))
    return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_PROGRAM, at(job.program)};
  std::uint64_t detail = 0;
  status = penstock_program_check(&c.program, &header, &detail);
  if (status != PENSTOCK_OK) return {status, PENSTOCK_FIELD_PROGRAM, detail};
  for (std::uint32_t i = 0; i < c.program.n_ops; ++i)
    if (beyond_the_card(c.program.ops[i])) return {PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_PROGRAM, i};
  if (c.program.tie == PENSTOCK_TIE_HASH)
    return {PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_PROGRAM, PENSTOCK_MAX_OPS};
  if (job.count == 0) return {PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0};
  const std::uint64_t task_bytes = job.count * sizeof(penstock_task);
  const std::uint64_t result_bytes = job.count * sizeof(penstock_result);
  if (!allowed(job.tasks, task_bytes, false))
    return {PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, at(job.tasks)};
  const Outcome no_results{PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, at(job.results)};
  if (!allowed(job.results, result_bytes, true)) return no_results;
  const auto overlaps = [&](std::uint64_t offset, std::uint64_t bytes) {
    return job.results < offset + bytes && offset < job.results + result_bytes;
  };
  if (overlaps(job.table, header.bytes) || overlaps(job.program, sizeof(penstock_program)) ||
      overlaps(job.tasks, task_bytes))
    return {PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, at(job.results)};
  for (std::uint64_t i = 0; i < job.count; ++i) {
    status = penstock_task_check(&c.tasks[i], &c.program, &header);
    if (status != PENSTOCK_OK) return {status, PENSTOCK_FIELD_TASK, i};
    if (beyond_the_card(c.program, c.tasks[i], job.commit))
      return {PENSTOCK_UNSUPPORTED, PENSTOCK_FIELD_TASK, i};
  }
  return {PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0};
}

// Runs the case and compares everything; a refused one must leave memory as it was.
void run_and_compare(Rig& rig, const Job& job, SelectCase& c) {
  const Outcome want = expected(rig, job, c);
  std::vector<std::byte> before(rig.at(0), rig.at(0) + rig.memory_bytes);
  const Outcome got = rig.run(job);
  ASSERT_EQ(got, want);
  if (want.status == PENSTOCK_OK && job.count > 0) {
    ASSERT_EQ(wrong_after(rig, job, c), "");
  } else {
    ASSERT_EQ(std::memcmp(before.data(), rig.at(0), rig.memory_bytes), 0) << "memory was changed";
  }
}

constexpr std::uint64_t kSmall = 1u << 18;

// A byte of a record is replaced, again and again; many of these records are malformed.
template <typename Record>
void damage(SeededRandom& random, Record* record, std::uint64_t bytes) {
  auto* raw = reinterpret_cast<unsigned char*>(record);
  const std::uint64_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff, random.below(256)};
  raw[random.below(bytes)] = static_cast<unsigned char>(values[random.below(std::size(values))]);
}

TEST(ScoreRefusals, DamagedHeaders) {
  Rig rig(11, sim::AxiConfig{}, kSmall);
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    SelectCase c = sound_case(seed, seed % 2 == 0);
    SeededRandom random(seed);
    if (seed > 4) damage(random, c.table.header(), sizeof(penstock_node_table));
    c.table.header()->generation = seed << 8;
    const Job job = place(rig, c, 64 * (seed % 3), seed);
    refused += expected(rig, job, c).status != PENSTOCK_OK;
    ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
  }
  EXPECT_GT(refused, 80);
}

TEST(ScoreRefusals, TablesOfEveryGeometryThatIsTooLarge) {
  Rig rig(12, sim::AxiConfig{}, 8u << 20);
  const std::uint32_t geometries[][4] = {// rows, resources, bits, free columns
                                         {kRows, 8, 2, 8},
                                         {kRows + 1, 1, 2, 0},
                                         {64, 9, 2, 0},
                                         {64, 8, 2, 9},
                                         {64, 16, 4096, 1}};
  for (const auto& g : geometries) {
    SCOPED_TRACE(g[0]);
    SelectCase c = sound_case(1);
    c.table = HostTable(g[0], g[0], g[1], 0, g[2], g[3]);
    c.program.n_ops = 0;
    std::memset(c.program.ops, 0, sizeof(c.program.ops));
    c.tasks.resize(1);
    c.tasks[0] = {};
    c.tasks[0].row = -1;
    const Job job = place(rig, c, 0, 3);
    ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
  }
}

TEST(ScoreRefusals, DamagedPrograms) {
  Rig rig(13, sim::AxiConfig{}, kSmall);
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 2 * PENSTOCK_CASES; ++seed) {
    SCOPED_TRACE(seed);
    SelectCase c = sound_case(seed % 7, false);
    c.table.header()->generation = seed << 8;
    SeededRandom random(seed);
    penstock_program& p = c.program;
    // Where something stands, or anywhere.
    damage(random, &p, random.one_in(4) ? sizeof(p) : 64 + 128 * (p.n_ops + 1u));
    if (random.one_in(6)) {
      p.n_typical = static_cast<std::uint32_t>(random.below(5));
      for (std::uint32_t i = 0; i < p.n_typical; ++i)
        p.typical[i] = {random.between(-1, 4),
                        1,
                        static_cast<std::uint32_t>(random.below(1002)),
                        1,
                        {0, 0, 0},
                        random.one_in(4) ? 1 << 20 : random.between(0, 9)};
    }
    if (random.one_in(6))
      for (std::int64_t& threshold : p.threshold) threshold = random.one_in(300) ? -1 : 0;
    if (random.one_in(6)) p.shape[random.below(128)] = static_cast<std::uint8_t>(random.below(104));
    if (random.one_in(4)) {
      penstock_column_op& op = p.ops[random.below(p.n_ops % 64 + 1u)];
      op.op = static_cast<std::uint8_t>(random.one_in(2) ? random.below(6) : 31 + random.below(15));
      op.weight = static_cast<std::int32_t>(random.between(-1000001, 1000001));
    }
    const Job job = place(rig, c, 0, seed);
    refused += expected(rig, job, c).status != PENSTOCK_OK;
    ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
  }
  EXPECT_GT(refused, PENSTOCK_CASES / 2);
}

TEST(ScoreRefusals, DamagedTasks) {
  Rig rig(14, sim::AxiConfig{}, kSmall);
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 2 * PENSTOCK_CASES; ++seed) {
    SCOPED_TRACE(seed);
    SelectCase c = sound_case(seed % 5, seed % 3 == 0);
    c.table.header()->generation = seed << 8;
    SeededRandom random(seed);
    penstock_task& task = c.tasks[random.below(3)];
    damage(random, &task, sizeof(task));
    if (random.one_in(3)) {
      task.n_domain_terms = static_cast<std::uint32_t>(random.below(14));
      for (std::uint32_t i = 0; i < std::min(task.n_domain_terms, PENSTOCK_MAX_DOMAIN_TERMS); ++i)
        task.domain_terms[i] = {
            static_cast<std::uint16_t>(random.one_in(9) ? 0xffff : random.below(3)),
            static_cast<std::uint16_t>(random.below(6)),
            0,
            static_cast<std::uint8_t>(random.below(12)),
            static_cast<std::uint8_t>(random.one_in(4) ? random.below(5) : 0),
            static_cast<std::int32_t>(random.between(-1, 1000001)),
            static_cast<std::uint32_t>(random.below(3)),
            static_cast<std::uint32_t>(random.below(140)),
            1,
            random.one_in(20) ? 1u : 0u};
    }
    if (random.one_in(5)) {
      task.n_raises = static_cast<std::uint32_t>(random.below(18));
      for (penstock_raise& raise : task.raises)
        raise = {static_cast<std::uint16_t>(random.below(6)), 0,
                 static_cast<std::uint16_t>(random.below(13)), 0};
    }
    const Job job = place(rig, c, 0, seed);
    refused += expected(rig, job, c).status != PENSTOCK_OK;
    ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
  }
  EXPECT_GT(refused, PENSTOCK_CASES / 4);
}

TEST(ScoreRefusals, WindowsThatEndOrOverlap) {
  Rig rig(15, sim::AxiConfig{}, kSmall);
  SelectCase c = sound_case(3);
  const Job sound = place(rig, c, 64, 9);
  const std::uint64_t table_end = sound.table + c.table.bytes();
  const std::uint64_t program_end = sound.program + sizeof(penstock_program);
  const std::uint64_t results_end = sound.results + 3 * sizeof(penstock_result);
  std::uint64_t generation = 1;
  for (const bool write : {false, true})
    for (const std::uint64_t edge :
         {std::uint64_t{0}, sound.table, sound.table + 143, sound.table + 144, table_end - 1,
          table_end, program_end - 1, program_end, sound.results - 1, results_end - 1,
          results_end}) {
      SCOPED_TRACE(edge);
      c.table.header()->generation = generation++ << 8;
      const Job job = place(rig, c, 64, 9);
      (write ? rig.write_end : rig.read_end) = edge;
      ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
      rig.read_end = rig.write_end = rig.memory_bytes;
    }
  for (const std::uint64_t begin : {sound.table, sound.table + 64, sound.results, results_end}) {
    SCOPED_TRACE(begin);
    c.table.header()->generation = generation++ << 8;
    const Job job = place(rig, c, 64, 9);
    rig.write_begin = begin;
    ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
    rig.write_begin = 0;
  }
  for (const std::uint64_t results :
       {sound.table, table_end - 8, table_end - 480, sound.program - 472, sound.program + 8,
        program_end - 8, sound.tasks - 472, sound.tasks + 3 * 1024 - 8}) {
    SCOPED_TRACE(results);
    c.table.header()->generation = generation++ << 8;
    Job job = place(rig, c, 64, 9);
    job.results = results;
    ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
  }
}

TEST(ScoreRefusals, NoTasks) {
  Rig rig(16, sim::AxiConfig{}, kSmall);
  SelectCase c = sound_case(4);
  Job job = place(rig, c, 0, 0);
  job.count = 0;
  job.tasks = job.results = rig.memory_bytes * 4;  // nothing is asked about them
  ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
  c.program.ops[0].reserved = 1;
  job = place(rig, c, 0, 0);
  job.count = 0;
  ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
}

TEST(ScoreRefusals, ATaskThatChangesAfterItWasLookedAtEndsTheBatch) {
  for (std::uint32_t bad = 1; bad < 6; ++bad) {
    SCOPED_TRACE(bad);
    Rig rig(bad, sim::AxiConfig{}, kSmall);
    SelectCase c = sound_case(7);
    for (int i = 0; i < 3; ++i) c.tasks.push_back(c.tasks[static_cast<std::size_t>(i)]);
    const Job job = place(rig, c, 0, 5);
    // While the first task is scanned a later one turns bad, as a card does not support or at all.
    rig.meanwhile = [&] {
      if (rig.rows_scanned == 0) return;
      penstock_task& task = *reinterpret_cast<penstock_task*>(rig.at(job.tasks) + bad * 1024);
      if (bad % 2 == 0)
        task.n_terms = 99;
      else
        task.gpu_count = task.gpu_milli = 1;
    };
    const Outcome got = rig.run(job);
    // The second task may have been fetched before.
    if (bad == 1 && got.status == PENSTOCK_OK) continue;
    ASSERT_EQ(got, (Outcome{PENSTOCK_CORRUPT, PENSTOCK_FIELD_TASK, bad}));
    c.tasks.resize(bad);  // those before it are placed
    std::memset(rig.at(job.results + bad * sizeof(penstock_result)), 0xa5, 64);
    ASSERT_EQ(wrong_after(rig, job, c), "");
  }
}

TEST(ScoreRefusals, ResetInTheMidstOfAJob) {
  Rig rig(18, sim::AxiConfig{}, kSmall);
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(seed);
    SelectCase c = sound_case(seed);
    c.table.header()->generation = seed << 8;
    Job job = place(rig, c, 0, seed);
    // The bus is drained by an isolator, which is not here: the memory forgets.
    rig.give_up_after(job, rig.dut.random() % 1500);
    c = sound_case(seed);
    job = place(rig, c, 0, seed);
    ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
  }
}

TEST(ScoreRefusals, BusErrorsAreReportedWithTheirAddress) {
  struct Place {
    const char* what;
    std::uint64_t offset;
    bool write;
    std::uint32_t field;
  };
  Rig rig(17, sim::AxiConfig{}, kSmall);
  SelectCase c = sound_case(5);
  std::uint64_t generation = 1;
  const Job at = place(rig, c, 64, 9);
  const penstock_node_table header = *c.table.header();
  const Place places[] = {
      {"header", at.table, false, PENSTOCK_FIELD_TABLE},
      {"allocatable", at.table + header.allocatable + 800, false, PENSTOCK_FIELD_TABLE},
      {"free column", at.table + header.free, false, PENSTOCK_FIELD_TABLE},
      {"nodes", at.table + header.bits, false, PENSTOCK_FIELD_TABLE},
      {"bit column", at.table + header.bits + 4 * 16, false, PENSTOCK_FIELD_TABLE},
      {"program", at.program, false, PENSTOCK_FIELD_PROGRAM},
      {"operations", at.program + 256, false, PENSTOCK_FIELD_PROGRAM},
      {"thresholds", at.program + sizeof(penstock_program) - 8, false, PENSTOCK_FIELD_PROGRAM},
      {"first task", at.tasks, false, PENSTOCK_FIELD_TASK},
      {"last task", at.tasks + 2900, false, PENSTOCK_FIELD_TASK},
      {"first result", at.results, true, PENSTOCK_FIELD_DST},
      {"last result", at.results + 470, true, PENSTOCK_FIELD_DST},
      {"requested", at.table + header.requested, true, PENSTOCK_FIELD_TABLE},
      {"generation", at.table + 128, true, PENSTOCK_FIELD_TABLE},
  };
  for (const Place& place_of : places) {
    SCOPED_TRACE(place_of.what);
    c = sound_case(5);
    c.table.header()->generation = generation++ << 8;
    Job job = place(rig, c, 64, 9);
    // Cells of every row fail where it is not known which one wins.
    const std::uint64_t line = place_of.offset / 64 * 64;
    const std::uint64_t bytes = std::string(place_of.what) == "requested" ? 4 * 1024 : 64;
    rig.memory.fail(kBus + line, bytes, !place_of.write, place_of.write);
    const Outcome got = rig.run(job);
    EXPECT_EQ(got.status, PENSTOCK_IO_ERROR);
    EXPECT_EQ(got.field, place_of.field);
    EXPECT_LT(got.detail - (kBus + line) + 4096, 4096 + bytes) << std::hex << got.detail;
    rig.memory.clear_failures();
    // The next job finds everything anew.
    c = sound_case(6);
    c.table.header()->generation = generation++ << 8;
    job = place(rig, c, 64, 9);
    ASSERT_NO_FATAL_FAILURE(run_and_compare(rig, job, c));
  }
}

TEST(ScoreRefusals, BusErrorsByChanceNeverHang) {
  int errors = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    sim::AxiConfig config;
    config.read_error_one_in = seed % 3 == 0 ? 0 : 20;
    config.write_error_one_in = seed % 3 == 1 ? 0 : 12;
    Rig rig(seed, config, kSmall);
    for (std::uint64_t round = 0; round < 4; ++round) {
      SelectCase c = sound_case(seed);
      c.table.header()->generation = round << 8;
      const Job job = place(rig, c, 0, seed);
      const Outcome got = rig.run(job);
      errors += got.status == PENSTOCK_IO_ERROR;
      if (got.status != PENSTOCK_OK) continue;
      ASSERT_EQ(wrong_after(rig, job, c), "");
    }
  }
  EXPECT_GT(errors, 15);
}

}  // namespace
}  // namespace penstock::rtl
