#include <cstring>

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

}  // namespace

void check_select(Rig& rig, std::vector<ConformanceRow>* rows) {
  const Capabilities& caps = rig.capabilities();
  const bool select = (caps.opcodes >> PENSTOCK_OP_SELECT & 1) != 0 && caps.max_rows > 0;
  const bool update = (caps.opcodes >> PENSTOCK_OP_UPDATE & 1) != 0 && caps.max_rows > 0;
  const int cases = rig.options().quick ? 25 : 250;
  SelectRules rules;
  if (rig.options().quick) rules.max_rows = 130;
  rules.max_rows = std::min(rules.max_rows, std::max(caps.max_rows, 1u));
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
