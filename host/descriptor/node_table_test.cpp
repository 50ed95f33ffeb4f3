#include "penstock/descriptor/node_table.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "penstock/descriptor/descriptor.h"

namespace {

TEST(NodeTable, LayoutIsAFunctionOfTheGeometry) {
  penstock_node_table header;
  // 100 rows are 128: a column of cells takes 1024 bytes, one of bits 16.
  const std::uint64_t bytes = penstock_node_table_init(&header, 100, 3, 2, 5, 4, 3, 6);
  EXPECT_EQ(header.capacity, 128u);
  EXPECT_EQ(header.rows, 0u);
  EXPECT_EQ(header.generation, 0u);
  EXPECT_EQ(header.allocatable, 4096u);
  EXPECT_EQ(header.requested, 4096u + 3 * 1024);
  EXPECT_EQ(header.scored, 4096u + 6 * 1024);
  EXPECT_EQ(header.gpu, 4096u + 9 * 1024);
  EXPECT_EQ(header.bits, 4096u + 11 * 1024);
  EXPECT_EQ(header.free, 4096u + 11 * 1024 + 128);  // 80 bytes of bits, up to a cache line
  // Columns of 4-byte cells take 512 bytes; 129 logs take 1032, up to a cache line.
  EXPECT_EQ(header.domain, 4096u + 15 * 1024 + 128);
  EXPECT_EQ(header.count, header.domain + 3 * 512);
  EXPECT_EQ(header.logs, header.count + 6 * 512);
  EXPECT_EQ(bytes, header.logs + 1088);
  EXPECT_EQ(header.bytes, bytes);
  EXPECT_EQ(penstock_node_table_init(nullptr, 100, 3, 2, 5, 4, 3, 6), bytes);
}

TEST(NodeTable, WithoutDomainColumnsThereAreNoLogs) {
  penstock_node_table header;
  const std::uint64_t bytes = penstock_node_table_init(&header, 100, 3, 2, 5, 4, 0, 2);
  EXPECT_EQ(header.domain, header.count);
  EXPECT_EQ(header.logs, header.count + 2 * 512);
  EXPECT_EQ(bytes, header.logs);
}

TEST(NodeTable, RefusesCountsOutOfRange) {
  penstock_node_table header = {};
  EXPECT_EQ(penstock_node_table_init(&header, 0, 1, 0, 2, 0, 0, 0), 0u);
  EXPECT_EQ(penstock_node_table_init(&header, PENSTOCK_MAX_ROWS + 1, 1, 0, 2, 0, 0, 0), 0u);
  EXPECT_EQ(penstock_node_table_init(&header, 64, 0, 0, 2, 0, 0, 0), 0u);
  EXPECT_EQ(penstock_node_table_init(&header, 64, 17, 0, 2, 0, 0, 0), 0u);
  EXPECT_EQ(penstock_node_table_init(&header, 64, 1, 17, 2, 0, 0, 0), 0u);
  EXPECT_EQ(penstock_node_table_init(&header, 64, 1, 0, 1, 0, 0, 0), 0u);
  EXPECT_EQ(penstock_node_table_init(&header, 64, 1, 0, 4097, 0, 0, 0), 0u);
  EXPECT_EQ(penstock_node_table_init(&header, 64, 1, 0, 2, 257, 0, 0), 0u);
  EXPECT_EQ(penstock_node_table_init(&header, 64, 1, 0, 2, 0, 65, 0), 0u);
  EXPECT_EQ(penstock_node_table_init(&header, 64, 1, 0, 2, 0, 0, 4097), 0u);
  EXPECT_EQ(header.magic, 0u) << "a refusal writes nothing";
  // 2^20 rows: 320 columns of 8 MiB, 4096 of 128 KiB, 4160 of 4 MiB, and the logs.
  EXPECT_EQ(penstock_node_table_init(&header, PENSTOCK_MAX_ROWS, 16, 16, 4096, 256, 64, 4096),
            4096u + 320 * (UINT64_C(8) << 20) + 4096 * (UINT64_C(128) << 10) +
                4160 * (UINT64_C(4) << 20) + (UINT64_C(8) << 20) + 64);
}

TEST(NodeTable, CheckFindsEveryDamagedField) {
  penstock_node_table good;
  const std::uint64_t bytes = penstock_node_table_init(&good, 128, 3, 2, 5, 4, 2, 3);
  good.rows = 128;
  EXPECT_EQ(penstock_node_table_check(&good, bytes), PENSTOCK_OK);
  EXPECT_EQ(penstock_node_table_check(&good, bytes + 1), PENSTOCK_OK);
  EXPECT_EQ(penstock_node_table_check(&good, bytes - 1), PENSTOCK_OUT_OF_RANGE);
  EXPECT_EQ(penstock_node_table_check(&good, 8), PENSTOCK_OUT_OF_RANGE);
  // Every bit but those of rows (where only 128 and less is a number of rows) and generation.
  for (std::size_t bit = 0; bit < sizeof good * 8; bit++) {
    penstock_node_table damaged = good;
    reinterpret_cast<unsigned char*>(&damaged)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    const bool is_rows = bit / 8 / 4 == offsetof(penstock_node_table, rows) / 4;
    const bool is_generation = bit / 64 == offsetof(penstock_node_table, generation) / 8;
    const bool fine = is_generation || (is_rows && damaged.rows <= 128);
    EXPECT_EQ(penstock_node_table_check(&damaged, bytes), fine ? PENSTOCK_OK : PENSTOCK_CORRUPT)
        << "bit " << bit;
  }
}

TEST(NodeTable, AGeometryThatWasForgedWithItsChecksumIsStillBounded) {
  penstock_node_table header;
  const std::uint64_t bytes = penstock_node_table_init(&header, 128, 3, 2, 5, 4, 2, 3);
  // All of it is consistent, but there is less memory than it says.
  penstock_node_table larger;
  penstock_node_table_init(&larger, 192, 3, 2, 5, 4, 2, 3);
  EXPECT_EQ(penstock_node_table_check(&larger, bytes), PENSTOCK_OUT_OF_RANGE);
}

class Program : public testing::Test {
 protected:
  void SetUp() override {
    penstock_node_table_init(&table_, 64, 3, 2, 8, 4, 2, 3);
    program_.magic = PENSTOCK_PROGRAM_MAGIC;
    program_.version = PENSTOCK_PROGRAM_VERSION;
    program_.best = 1;
    program_.n_ops = 3;
    program_.ops[0].op = PENSTOCK_FILTER_FIT;
    program_.ops[0].n = 2;
    program_.ops[0].column[1] = 2;
    program_.ops[1].op = PENSTOCK_SCORE_LEAST_ALLOCATED;
    program_.ops[1].n = 2;
    program_.ops[1].column[1] = 1;
    program_.ops[1].list_weight[0] = 100;
    program_.ops[1].list_weight[1] = 1;
    program_.ops[1].skip_unasked = 3;
    program_.ops[1].weight = -5;
    program_.ops[2].op = PENSTOCK_SCORE_FEATURES;
    program_.ops[2].n = 1;
    program_.ops[2].column[0] = 3;
    program_.ops[2].normalise = PENSTOCK_NORMALISE_MIN_MAX;
    program_.ops[2].weight = PENSTOCK_MAX_WEIGHT;
  }
  using Change = std::function<void(penstock_program&)>;
  void expect(std::uint32_t status, std::uint64_t op, const char* what, const Change& change) {
    penstock_program program = program_;
    change(program);
    std::uint64_t detail = 99;
    EXPECT_EQ(penstock_program_check(&program, &table_, &detail), status) << what;
    EXPECT_EQ(detail, op) << what;
  }
  penstock_node_table table_;
  penstock_program program_ = {};
};

TEST_F(Program, AcceptsWhatItDefines) {
  expect(PENSTOCK_OK, 0, "as it is", [](auto&) {});
  expect(PENSTOCK_OK, 0, "no operations", [](auto& p) { p.n_ops = 0; });
  expect(PENSTOCK_OK, 0, "operations past the last are not read",
         [](auto& p) { p.ops[3].op = 99; });
}

TEST_F(Program, RefusesItsOwnFields) {
  constexpr std::uint64_t kNone = PENSTOCK_MAX_OPS;
  expect(PENSTOCK_CORRUPT, kNone, "magic", [](auto& p) { p.magic++; });
  expect(PENSTOCK_CORRUPT, kNone, "version", [](auto& p) { p.version++; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "n_ops", [](auto& p) { p.n_ops = 65; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "tie", [](auto& p) { p.tie = 3; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "gpu_pick", [](auto& p) { p.gpu_pick = 3; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "best 0", [](auto& p) { p.best = 0; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "best 9", [](auto& p) { p.best = 9; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "reserved", [](auto& p) { p.reserved[4] = 1; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "reserved2", [](auto& p) { p.reserved2 = 1; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "reserved3", [](auto& p) { p.reserved3[3] = 1; });
  expect(PENSTOCK_OK, 0, "shape", [](auto& p) { p.shape[100] = 100; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "shape 101", [](auto& p) { p.shape[0] = 101; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "shape past 100", [](auto& p) { p.shape[101] = 1; });
  expect(PENSTOCK_INVALID_ARGUMENT, kNone, "typical", [](auto& p) { p.n_typical = 257; });
}

TEST_F(Program, RefusesOperationsThatReachOutOfTheTableOrMeanNothing) {
  const auto invalid = [&](std::uint64_t op, const char* what, const Change& change) {
    expect(PENSTOCK_INVALID_ARGUMENT, op, what, change);
  };
  expect(PENSTOCK_UNSUPPORTED, 0, "unknown filter", [](auto& p) { p.ops[0].op = 6; });
  expect(PENSTOCK_UNSUPPORTED, 1, "unknown score", [](auto& p) { p.ops[1].op = 45; });
  expect(PENSTOCK_UNSUPPORTED, 0, "operation 0", [](auto& p) { p.ops[0].op = 0; });
  expect(PENSTOCK_UNSUPPORTED, 1, "unknown normalise", [](auto& p) { p.ops[1].normalise = 6; });
  invalid(2, "filter after score", [](auto& p) { p.ops[2] = p.ops[0]; });
  invalid(0, "resource", [](auto& p) { p.ops[0].column[1] = 3; });
  invalid(2, "free column", [](auto& p) { p.ops[2].column[0] = 4; });
  invalid(0, "list too long", [](auto& p) { p.ops[0].n = 17; });
  invalid(0, "list much too long", [](auto& p) { p.ops[0].n = 255; });
  invalid(2, "too many features", [](auto& p) { p.ops[2].n = 9; });
  invalid(0, "column past the list", [](auto& p) { p.ops[0].column[2] = 1; });
  invalid(1, "list weight 0", [](auto& p) { p.ops[1].list_weight[1] = 0; });
  invalid(1, "list weight 101", [](auto& p) { p.ops[1].list_weight[1] = 101; });
  invalid(1, "list weight past the list", [](auto& p) { p.ops[1].list_weight[2] = 1; });
  invalid(0, "list weight of a filter", [](auto& p) { p.ops[0].list_weight[0] = 1; });
  invalid(1, "skip past the list", [](auto& p) { p.ops[1].skip_unasked = 4; });
  invalid(0, "skip of a filter", [](auto& p) { p.ops[0].skip_unasked = 1; });
  invalid(0, "weight of a filter", [](auto& p) { p.ops[0].weight = 1; });
  invalid(0, "normalised filter", [](auto& p) { p.ops[0].normalise = 1; });
  invalid(1, "weight", [](auto& p) { p.ops[1].weight = PENSTOCK_MAX_WEIGHT + 1; });
  invalid(1, "weight of the most negative", [](auto& p) { p.ops[1].weight = INT32_MIN; });
  invalid(1, "group", [](auto& p) { p.ops[1].group = 1; });
  invalid(1, "reserved", [](auto& p) { p.ops[1].reserved = 1; });
  invalid(1, "scale", [](auto& p) { p.ops[1].scale[5] = 1; });
}

TEST_F(Program, ScalesArePositiveAndOneForEachEntry) {
  penstock_column_op& op = program_.ops[1];
  op = {};
  op.op = PENSTOCK_SCORE_DOT_PRODUCT;
  op.n = 2;
  op.scale[0] = 1;
  op.scale[1] = PENSTOCK_MAX_QUANTITY;
  expect(PENSTOCK_OK, 0, "good", [](auto&) {});
  const auto invalid = [&](const char* what, const Change& change) {
    expect(PENSTOCK_INVALID_ARGUMENT, 1, what, change);
  };
  invalid("0", [](auto& p) { p.ops[1].scale[0] = 0; });
  invalid("negative", [](auto& p) { p.ops[1].scale[0] = -1; });
  invalid("too large", [](auto& p) { p.ops[1].scale[1]++; });
  invalid("no entries", [](auto& p) { p.ops[1] = {}, p.ops[1].op = PENSTOCK_SCORE_DOT_PRODUCT; });
  invalid("more than there are scales", [](auto& p) { p.ops[1].n = 7; });
  invalid("packing without its resource",
          [](auto& p) { p.ops[1] = {}, p.ops[1].op = PENSTOCK_SCORE_GPU_PACKING; });
  invalid("clustering without its scale",
          [](auto& p) { p.ops[1] = {}, p.ops[1].op = PENSTOCK_SCORE_GPU_CLUSTERING; });
}

TEST_F(Program, WeightsThatCouldOverflowAreRefused) {
  // A feature score reaches 2^51, and a weighted sum may reach 2^62.
  program_.ops[2].normalise = PENSTOCK_NORMALISE_NONE;
  program_.ops[2].weight = 2047;
  expect(PENSTOCK_OK, 0, "just below", [](auto&) {});
  expect(PENSTOCK_INVALID_ARGUMENT, 2, "with the other score it is more",
         [](auto& p) { p.ops[2].weight = 2048; });
  expect(PENSTOCK_INVALID_ARGUMENT, 2, "negative", [](auto& p) { p.ops[2].weight = -2048; });
  expect(PENSTOCK_INVALID_ARGUMENT, 3, "the second one", [](auto& p) {
    p.ops[3] = p.ops[2];
    p.n_ops = 4;
  });
  // The scores by domains reach 2^46 and 2^36.
  const auto domains = [](auto& p) {
    p.ops[2] = {};
    p.ops[2].op = PENSTOCK_SCORE_DOMAINS;
    p.ops[2].weight = 65535;
  };
  expect(PENSTOCK_OK, 0, "domains", domains);
  expect(PENSTOCK_INVALID_ARGUMENT, 2, "domains", [&](auto& p) {
    domains(p);
    p.ops[2].weight = 65536;
  });
  expect(PENSTOCK_OK, 0, "spread", [&](auto& p) {
    domains(p);
    p.ops[2].op = PENSTOCK_SCORE_SPREAD;
    p.ops[2].weight = PENSTOCK_MAX_WEIGHT;
  });
  // Normalised, it is within 2^20, and 63 of them cannot overflow.
  expect(PENSTOCK_OK, 0, "normalised", [](auto& p) {
    p.n_ops = PENSTOCK_MAX_OPS;
    for (int i = 2; i < 64; i++) {
      p.ops[i] = p.ops[2];
      p.ops[i].normalise = PENSTOCK_NORMALISE_SPREAD;
      p.ops[i].weight = PENSTOCK_MAX_WEIGHT;
    }
  });
}

class Task : public Program {
 protected:
  using ChangeTask = std::function<void(penstock_task&)>;
  void expect_task(std::uint32_t status, const char* what, const ChangeTask& change) {
    penstock_task task = {};
    task.row = -1;
    change(task);
    EXPECT_EQ(penstock_task_check(&task, &program_, &table_), status) << what;
  }
};

TEST_F(Task, Bounds) {
  const auto good = [&](const char* what, const ChangeTask& change) {
    expect_task(PENSTOCK_OK, what, change);
  };
  const auto bad = [&](const char* what, const ChangeTask& change) {
    expect_task(PENSTOCK_INVALID_ARGUMENT, what, change);
  };
  good("nothing", [](auto&) {});
  good("request", [](auto& t) { t.request[2] = PENSTOCK_MAX_REQUEST; });
  bad("request too large", [](auto& t) { t.request[2] = PENSTOCK_MAX_REQUEST + 1; });
  bad("request below 0", [](auto& t) { t.request[0] = -1; });
  bad("resource that the table does not have", [](auto& t) { t.request[3] = 1; });
  bad("scored request below 0", [](auto& t) { t.scored_request[0] = -1; });
  bad("scored request of no resource", [](auto& t) { t.scored_request[15] = 1; });
  good("GPUs", [](auto& t) { t.gpu_count = 16, t.gpu_milli = 1000; });
  bad("too many GPUs", [](auto& t) { t.gpu_count = 17, t.gpu_milli = 1; });
  bad("GPUs of nothing", [](auto& t) { t.gpu_count = 1; });
  bad("more than a GPU", [](auto& t) { t.gpu_count = 1, t.gpu_milli = 1001; });
  bad("thousandths of no GPU", [](auto& t) { t.gpu_milli = 1; });
  good("row", [](auto& t) { t.row = PENSTOCK_MAX_ROWS - 1; });
  bad("row too large", [](auto& t) { t.row = PENSTOCK_MAX_ROWS; });
  bad("row below -1", [](auto& t) { t.row = -2; });
  bad("class", [](auto& t) { t.klass = 16; });
  good("feature", [](auto& t) { t.feature[7] = -256; });
  bad("feature too large", [](auto& t) { t.feature[7] = 257; });
  bad("feature too small", [](auto& t) { t.feature[0] = -257; });
  bad("too many terms", [](auto& t) { t.n_terms = 17; });
  good("term", [](auto& t) { t.n_terms = 1, t.terms[0] = {7, 255, 1, -PENSTOCK_MAX_WEIGHT}; });
  bad("term's column", [](auto& t) { t.n_terms = 1, t.terms[0] = {8, 0, 0, 0}; });
  bad("term's clear", [](auto& t) { t.n_terms = 1, t.terms[0] = {7, 0, 2, 0}; });
  bad("term's weight", [](auto& t) { t.n_terms = 1, t.terms[0].weight = INT32_MIN; });
  good("terms past the last are not read", [](auto& t) { t.terms[0].column = 9999; });
  good("set bits", [](auto& t) { t.set_bits[7] = 7; });
  bad("set bit out of the table", [](auto& t) { t.set_bits[7] = 8; });
  bad("a set bit with a fixed meaning", [](auto& t) { t.set_bits[0] = 1; });
  good("counts", [](auto& t) { t.count[3] = 4; });
  bad("count out of the table", [](auto& t) { t.count[3] = 5; });
}

TEST_F(Task, DomainTerms) {
  const auto expect_term = [&](std::uint32_t status, const char* what,
                               const std::function<void(penstock_domain_term&)>& change) {
    expect_task(status, what, [&](auto& t) {
      t.n_domain_terms = 12;
      for (auto& term : t.domain_terms) term = {1, 2, 2, 7, 2, 1, 1, 64, 3, 0};
      change(t.domain_terms[11]);
    });
  };
  const auto good = [&](const char* what, const auto& change) {
    expect_term(PENSTOCK_OK, what, change);
  };
  const auto bad = [&](const char* what, const auto& change) {
    expect_term(PENSTOCK_INVALID_ARGUMENT, what, change);
  };
  good("as it is", [](auto&) {});
  good("a row by itself", [](auto& term) { term.domain = PENSTOCK_ROW_DOMAIN; });
  bad("domain column", [](auto& term) { term.domain = 2; });
  bad("count column", [](auto& term) { term.count = 3; });
  bad("count column of nodes", [](auto& term) { term.nodes = 3; });
  bad("kind", [](auto& term) { term.kind = 4; });
  bad("self", [](auto& term) { term.self = 2; });
  bad("domains", [](auto& term) { term.domains = 65; });
  bad("weight", [](auto& term) { term.weight = -PENSTOCK_MAX_WEIGHT - 1; });
  bad("reserved", [](auto& term) { term.reserved = 1; });
  expect_task(PENSTOCK_INVALID_ARGUMENT, "too many", [](auto& t) { t.n_domain_terms = 13; });
  expect_task(PENSTOCK_OK, "past the last", [](auto& t) { t.domain_terms[0].count = 99; });

  // What is right depends on the operation that reads the group.
  program_.ops[0] = {};
  program_.ops[0].op = PENSTOCK_FILTER_DOMAINS;
  program_.ops[0].group = 7;
  good("a spread", [](auto&) {});
  good("of another group", [](auto& term) { term.group = 6, term.kind = 3; });
  bad("kind of a filter", [](auto& term) { term.kind = 3; });
  bad("skew 0", [](auto& term) { term.weight = 0; });
  good("weight of a kind that has none", [](auto& term) { term.kind = 1, term.weight = 0; });
  good("the largest skew", [](auto& term) { term.weight = INT32_MAX; });
  program_.n_ops = 1;
  program_.ops[0].op = PENSTOCK_SCORE_SPREAD;
  good("flags", [](auto& term) { term.kind = 3; });
  bad("skew 0", [](auto& term) { term.kind = 0, term.weight = 0; });
  program_.ops[0].op = PENSTOCK_SCORE_DOMAINS;
  bad("kind of a score", [](auto&) {});
  program_.ops[0].group = 5;
  good("of its own group",
       [](auto& term) { term.group = 5, term.kind = 0, term.weight = -1000000; });
  bad("weight", [](auto& term) { term.group = 5, term.kind = 0, term.weight = 1000001; });
}

TEST_F(Task, Raises) {
  const auto expect_raise = [&](std::uint32_t status, const char* what,
                                const std::function<void(penstock_raise&)>& change) {
    expect_task(status, what, [&](auto& t) {
      t.n_raises = 16;
      change(t.raises[15]);
    });
  };
  expect_raise(PENSTOCK_OK, "as it is", [](auto&) {});
  expect_raise(PENSTOCK_OK, "the last of all", [](auto& r) { r = {2, 1, 7, 0}; });
  expect_raise(PENSTOCK_OK, "a row by itself", [](auto& r) { r.domain = PENSTOCK_ROW_DOMAIN; });
  expect_raise(PENSTOCK_INVALID_ARGUMENT, "count", [](auto& r) { r.count = 3; });
  expect_raise(PENSTOCK_INVALID_ARGUMENT, "domain", [](auto& r) { r.domain = 2; });
  expect_raise(PENSTOCK_INVALID_ARGUMENT, "eligible", [](auto& r) { r.eligible = 8; });
  expect_raise(PENSTOCK_INVALID_ARGUMENT, "reserved", [](auto& r) { r.reserved = 1; });
  expect_task(PENSTOCK_INVALID_ARGUMENT, "too many", [](auto& t) { t.n_raises = 17; });
}

TEST(ColumnOpcode, Names) {
  EXPECT_STREQ(penstock_column_opcode_name(PENSTOCK_FILTER_FIT), "fit");
  EXPECT_STREQ(penstock_column_opcode_name(PENSTOCK_SCORE_LEAST_ALLOCATED), "least_allocated");
  EXPECT_STREQ(penstock_column_opcode_name(PENSTOCK_SCORE_GPU_CLUSTERING), "gpu_clustering");
  EXPECT_STREQ(penstock_column_opcode_name(PENSTOCK_FILTER_DOMAINS), "domains");
  EXPECT_STREQ(penstock_column_opcode_name(PENSTOCK_SCORE_RATIO), "ratio");
  EXPECT_STREQ(penstock_column_opcode_name(PENSTOCK_SCORE_FGD), "fgd");
  for (const std::uint32_t op : {0u, 6u, 31u, 45u, ~0u})
    EXPECT_STREQ(penstock_column_opcode_name(op), "?");
}

}  // namespace
