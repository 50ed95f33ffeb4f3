// SELECT and UPDATE on a node table as a damaged pool or a hostile tenant may hold it: whatever the
// checks accept has to run without a fault, and to the same bits on both host engines.
//
// Input, in this order; what is missing is zero:
//   10 bytes   geometry: rows, spare rows / 64, resources, GPUs, bit columns, free columns, domain
//              columns, count columns, commit, and in bit 0 of the last whether the program is
//              taken as it stands (17368 bytes)
//   144 bytes  a header, looked at only by the check
//   program    tie, gpu_pick, best, seed (2 bytes), then for each of up to 7 operations the fields
//              that matter, near their ranges; and whether RATIO's and FGD's tables follow
//   tasks      up to 4 of 1024 bytes, whose indices are brought near their ranges
//   updates    up to 8 of 24 bytes
//   cells      columns in the table's order, repeated until the table is full
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/engine/simd_select.h"
#include "penstock/engine/update.h"

namespace penstock {
namespace {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  template <typename T>
  T take() {
    T value = {};
    const std::size_t length = std::min(sizeof value, size_);
    if (length > 0) std::memcpy(&value, data_, length);
    data_ += length;
    size_ -= length;
    return value;
  }
  // 0 .. most, and now and then one more, which is out of the range.
  std::uint32_t near(std::uint32_t most) {
    const auto byte = take<std::uint8_t>();
    return byte == 255 ? most + 1 : byte % (most + 1);
  }
  std::size_t left() const { return size_; }

  // Half of the values are small, the others lie where something could overflow.
  std::int64_t cell() {
    const auto kind = take<std::uint8_t>();
    const std::int64_t low = take<std::uint8_t>();
    switch (kind % 12) {
      case 0:
        return low * 50;
      case 1:
        return low << 30;
      case 2:
        return (std::int64_t{1} << 46) - low;
      case 3:
        return PENSTOCK_MAX_QUANTITY - low;
      case 4:
        return PENSTOCK_MAX_QUANTITY + low;
      case 5:
        return PENSTOCK_MAX_FREE_VALUE - 128 + low;
      case 6:
        return -PENSTOCK_MAX_FREE_VALUE - 128 + low;
      case 7:
        return low % 2 == 0 ? INT64_MIN : INT64_MAX;
      case 8:
        return static_cast<std::int64_t>(take<std::uint64_t>());
      default:
        return low % 20;
    }
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "simd differs from scalar: %s\n", what.c_str());
  std::abort();
}

penstock_column_op read_op(Input& input, const penstock_node_table& header) {
  constexpr std::uint8_t kCodes[] = {1,  2,  3,  4, 32, 33, 34, 35, 36, 37,
                                     38, 39, 40, 5, 41, 42, 43, 44, 45};
  penstock_column_op op = {};
  op.op = kCodes[input.near(17)];
  op.normalise = static_cast<std::uint8_t>(input.near(5));
  op.weight = input.near(40) == 41 ? input.take<std::int32_t>()
                                   : static_cast<std::int32_t>(input.near(9)) - 4;
  if (!PENSTOCK_COLUMN_OP_IS_SCORE(op.op)) op.normalise = 0, op.weight = 0;
  const bool grouped = op.op == PENSTOCK_FILTER_BITS || op.op == PENSTOCK_SCORE_BITS ||
                       op.op == PENSTOCK_FILTER_DOMAINS || op.op == PENSTOCK_SCORE_DOMAINS ||
                       op.op == PENSTOCK_SCORE_SPREAD;
  if (grouped) op.group = static_cast<std::uint8_t>(input.near(2));
  if (grouped || op.op == PENSTOCK_FILTER_GPU || op.op == PENSTOCK_FILTER_ROW) return op;
  const bool free_columns =
      op.op == PENSTOCK_SCORE_FEATURES || op.op == PENSTOCK_SCORE_GPU_CLUSTERING;
  const bool weighted = op.op == PENSTOCK_SCORE_LEAST_ALLOCATED ||
                        op.op == PENSTOCK_SCORE_MOST_ALLOCATED || op.op == PENSTOCK_SCORE_RATIO;
  const bool machine = op.op == PENSTOCK_SCORE_BEST_FIT || op.op == PENSTOCK_SCORE_DOT_PRODUCT;
  const bool one = op.op == PENSTOCK_SCORE_GPU_PACKING || op.op == PENSTOCK_SCORE_FGD;
  const std::uint32_t columns = free_columns ? header.n_free : header.n_resources;
  op.n = static_cast<std::uint8_t>(one ? 1 : input.near(6));
  for (std::uint32_t i = 0; i < op.n; i++) {
    op.column[i] = static_cast<std::uint16_t>(input.near(columns == 0 ? 0 : columns - 1));
    if (weighted) op.list_weight[i] = static_cast<std::uint16_t>(input.near(99) + 1);
    if (machine && i < 6) op.scale[i] = input.cell();
  }
  if (op.op == PENSTOCK_SCORE_GPU_CLUSTERING) op.scale[0] = input.cell();
  if (weighted || op.op == PENSTOCK_SCORE_BALANCED) op.skip_unasked = input.near((1u << op.n) - 1);
  return op;
}

// What RATIO and FGD look up.
void read_tables(Input& input, const penstock_node_table& header, penstock_program* program) {
  for (std::uint32_t i = 0; i < PENSTOCK_SHAPE_POINTS; i++)
    program->shape[i] = static_cast<std::uint8_t>(input.near(100));
  program->n_typical = input.near(4);
  for (std::uint32_t i = 0; i < program->n_typical; i++) {
    penstock_typical& typical = program->typical[i];
    typical.request = input.cell();
    typical.gpu_count = input.near(4);
    typical.gpu_milli = typical.gpu_count == 0 ? 0 : 1 + input.take<std::uint16_t>() % 1000;
    typical.model = static_cast<std::uint16_t>(input.near(header.n_bits - 1));
    typical.weight = 1 + input.near(200);
  }
  const std::int64_t step = input.take<std::uint16_t>();
  for (std::int64_t i = 0; i < PENSTOCK_FGD_THRESHOLDS; i++)
    program->threshold[i] = (i - 49) * step;
}

penstock_program read_program(Input& input, const penstock_node_table& header) {
  penstock_program program = {};
  program.magic = PENSTOCK_PROGRAM_MAGIC;
  program.version = PENSTOCK_PROGRAM_VERSION;
  program.tie = static_cast<std::uint8_t>(input.near(2));
  program.gpu_pick = static_cast<std::uint8_t>(input.near(3));
  program.best = static_cast<std::uint8_t>(input.near(7) + 1);
  program.seed = input.take<std::uint16_t>();
  program.n_ops = static_cast<std::uint16_t>(input.near(6));
  for (std::uint32_t i = 0; i < program.n_ops; i++) program.ops[i] = read_op(input, header);
  // Most programs that are refused for their order would be fine sorted.
  std::stable_partition(program.ops, program.ops + program.n_ops,
                        [](const auto& op) { return !PENSTOCK_COLUMN_OP_IS_SCORE(op.op); });
  if (input.near(1) == 1) read_tables(input, header, &program);
  return program;
}

penstock_task read_task(Input& input, const penstock_node_table& header) {
  auto task = input.take<penstock_task>();
  for (std::uint32_t r = 0; r < PENSTOCK_MAX_RESOURCES; r++) {
    if (r >= header.n_resources) task.request[r] = task.scored_request[r] = 0;
    task.request[r] &= task.request[r] < 0 ? 0xff : PENSTOCK_MAX_QUANTITY - 1;
    task.scored_request[r] &= task.scored_request[r] < 0 ? 0xfff : PENSTOCK_MAX_QUANTITY - 1;
  }
  task.gpu_count %= PENSTOCK_MAX_GPUS + 1;
  task.gpu_milli = task.gpu_count == 0 ? 0 : task.gpu_milli % 1001;
  if (task.row != -1) task.row = task.row % 3 == 0 ? task.row % 300 : -1;
  task.n_terms %= PENSTOCK_MAX_TERMS + 2;
  task.klass %= PENSTOCK_MAX_RESOURCES;
  for (penstock_term& term : task.terms) {
    term.column = static_cast<std::uint16_t>(term.column % header.n_bits);
    term.group %= 3;
    term.clear &= 1;
    term.weight %= PENSTOCK_MAX_WEIGHT + 1;
  }
  for (std::int64_t& feature : task.feature) feature %= 257;
  for (std::uint16_t& column : task.set_bits)
    column = column % 2 == 0 ? 0 : static_cast<std::uint16_t>(column % header.n_bits);
  for (std::uint16_t& column : task.count)
    column = static_cast<std::uint16_t>(column % (header.n_free + 1u));
  task.n_domain_terms %= PENSTOCK_MAX_DOMAIN_TERMS + 2;
  task.n_raises %= PENSTOCK_MAX_RAISES + 2;
  const auto domain_column = [&](std::uint16_t column) {
    return static_cast<std::uint16_t>(
        column % 4 == 0 || header.n_domains == 0 ? PENSTOCK_ROW_DOMAIN : column % header.n_domains);
  };
  const auto count_column = [&](std::uint16_t column) {
    return static_cast<std::uint16_t>(column % std::max(header.n_counts, 1u));
  };
  for (penstock_domain_term& term : task.domain_terms) {
    term.domain = domain_column(term.domain);
    term.count = count_column(term.count);
    term.nodes = count_column(term.nodes);
    term.group %= 4;
    term.kind = static_cast<std::uint8_t>(term.kind % 16 == 15 ? 3 : term.kind % 3);
    if (term.weight < -PENSTOCK_MAX_WEIGHT) term.weight = 1;
    if (term.weight > PENSTOCK_MAX_WEIGHT && term.self % 4 != 0) term.weight %= 7;
    term.self &= 1;
    term.domains %= header.capacity + 1;
    term.reserved = 0;
  }
  for (penstock_raise& raise : task.raises) {
    raise.domain = domain_column(raise.domain);
    raise.count = count_column(raise.count);
    raise.eligible = static_cast<std::uint16_t>(raise.eligible % header.n_bits);
    raise.reserved = 0;
  }
  return task;
}

void fill_cells(Input& input, HostTable* table) {
  const TableView view = table->view();
  const penstock_node_table& header = *table->header();
  const auto words = [&](std::uint32_t columns) { return std::size_t{columns} * header.capacity; };
  std::vector<std::int64_t> values;
  while (input.left() > 0 && values.size() < 4096) values.push_back(input.cell());
  if (values.empty()) values.push_back(0);
  std::size_t at = 0;
  const auto fill = [&](std::int64_t* base, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) base[i] = values[at++ % values.size()];
  };
  fill(view.allocatable, words(header.n_resources));
  fill(view.requested, words(header.n_resources));
  fill(view.scored, words(header.n_resources));
  fill(view.gpu, words(header.n_gpus));
  fill(view.free, words(header.n_free));
  const auto fill_small = [&](std::int32_t* base, std::size_t n, std::int64_t most) {
    for (std::size_t i = 0; i < n; i++) {
      const std::int64_t value = values[at++ % values.size()];
      // Most cells are within their bounds; the others are what a conversion makes of them.
      base[i] = static_cast<std::int32_t>(value % 7 == 0 ? value : value % most);
    }
  };
  fill_small(view.domain, words(header.n_domains), 70);
  fill_small(view.count, words(header.n_counts), 9);
  for (std::size_t i = 0; i < words(header.n_bits) / 64; i++) {
    const auto value = static_cast<std::uint64_t>(values[at++ % values.size()]);
    // The node bits are mostly set, others are mixed.
    view.bits[i] = i < header.capacity / 64 ? ~(value & 0x11) : value * 0x9e3779b97f4a7c15;
  }
}

void check_header(Input& input) {
  struct alignas(64) Page {
    unsigned char bytes[PENSTOCK_TABLE_HEADER_BYTES] = {};
  } page;
  const auto header = input.take<penstock_node_table>();
  std::memcpy(page.bytes, &header, sizeof header);
  // No table is as small as its header.
  if (penstock_node_table_check(reinterpret_cast<penstock_node_table*>(page.bytes),
                                sizeof page.bytes) == PENSTOCK_OK)
    fail("a header that passes for a table");
}

void run(Input input) {
  const std::uint32_t rows = input.take<std::uint8_t>();
  const std::uint32_t spare = input.take<std::uint8_t>() % 3 * 64;
  const std::uint32_t resources = 1 + input.take<std::uint8_t>() % 4;
  const std::uint32_t gpus = input.take<std::uint8_t>() % 6;
  const std::uint32_t bits = 2 + input.take<std::uint8_t>() % 8;
  const std::uint32_t free_columns = input.take<std::uint8_t>() % 5;
  const std::uint32_t domains = input.take<std::uint8_t>() % 4;
  const std::uint32_t counts = input.take<std::uint8_t>() % 5;
  const auto commit = input.take<std::uint8_t>();
  const bool as_it_stands = input.take<std::uint8_t>() & 1;
  HostTable table(rows, std::max(rows + spare, 1u), resources, gpus, bits, free_columns, domains,
                  counts);
  check_header(input);

  const auto program =
      as_it_stands ? input.take<penstock_program>() : read_program(input, *table.header());
  std::uint64_t detail = 0;
  if (penstock_program_check(&program, table.header(), &detail) != PENSTOCK_OK) return;
  std::vector<penstock_task> tasks(1 + input.take<std::uint8_t>() % 4);
  for (penstock_task& task : tasks) task = read_task(input, *table.header());
  std::vector<penstock_update> updates(input.take<std::uint8_t>() % 9);
  for (penstock_update& update : updates) {
    update = input.take<penstock_update>();
    update.field %= PENSTOCK_UPDATE_COUNT + 2;
    update.row %= table.header()->capacity + 1;
    update.column %= 9;
  }
  fill_cells(input, &table);

  HostTable other = table;
  for (const penstock_task& task : tasks) {
    if (penstock_task_check(&task, &program, table.header()) != PENSTOCK_OK) continue;
    penstock_result expected;
    penstock_result actual;
    scalar_select(table.view(), program, task, commit & 1, &expected);
    simd_select(other.view(), program, task, commit & 1, &actual);
    if (const std::string found = difference(expected, actual); !found.empty()) fail(found);
  }
  if (const std::string found = difference(table, other); !found.empty()) fail(found);

  const std::uint32_t status = apply_updates(table.view(), updates.data(), updates.size(), &detail);
  if (status != PENSTOCK_OK && !difference(table, other).empty())
    fail("a refused list of updates changed the table");
  if (table.header()->rows > table.header()->capacity) fail("more rows than there is room for");
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock::run(penstock::Input(data, size));
  return 0;
}
