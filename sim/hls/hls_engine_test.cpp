// What the engine `hls` takes and refuses, and that large operations and several queues come out
// right. Bit for bit it is held by the conformance run.
#include "penstock/sim/hls/hls_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<Engine> make_hls(const std::string& argument = "") {
  return sim::hls_engine_factory().make(argument).value();
}

penstock_descriptor make(std::uint32_t opcode, std::uint32_t n_src, std::uint32_t n_dst,
                         std::uint64_t count) {
  penstock_descriptor d{};
  d.opcode = static_cast<std::uint8_t>(opcode);
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.n_src = static_cast<std::uint8_t>(n_src);
  d.n_dst = static_cast<std::uint8_t>(n_dst);
  d.count = count;
  return d;
}

penstock_completion run(Engine& engine, Queue& queue, const penstock_descriptor& d) {
  EXPECT_TRUE(queue.submit(d));
  engine.advance(queue);
  penstock_completion completion{};
  EXPECT_TRUE(queue.poll(&completion));
  return completion;
}

penstock_descriptor sum_of(const std::vector<std::vector<float>>& src, float* dst,
                           std::uint64_t count) {
  penstock_descriptor d =
      make(PENSTOCK_OP_REDUCE, static_cast<std::uint32_t>(src.size()), 1, count);
  d.type = d.out_type = PENSTOCK_F32;
  for (std::size_t s = 0; s < src.size(); ++s) d.src[s] = penstock_address_host(src[s].data());
  d.dst[0] = penstock_address_host(dst);
  return d;
}

// Sums of integers, which are exact whatever adds them.
void sum_and_check(Engine& engine, std::size_t count, float first) {
  std::vector<std::vector<float>> src(3, std::vector<float>(count));
  for (std::size_t s = 0; s < src.size(); ++s)
    for (std::size_t i = 0; i < count; ++i)
      src[s][i] = first + static_cast<float>(i % 1000) * static_cast<float>(s + 1);
  std::vector<float> sum(count + 1, -1.0f);
  auto queue = Queue::create(nullptr, QueueConfig{}).value();
  ASSERT_EQ(run(engine, *queue, sum_of(src, sum.data(), count)).status, PENSTOCK_OK);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(sum[i], 3 * first + static_cast<float>(i % 1000) * 6) << i;
  EXPECT_EQ(sum[count], -1.0f);
}

TEST(HlsEngine, AnOperandOfManyPieces) { sum_and_check(*make_hls(), 100'003, 1); }

TEST(HlsEngine, QueuesOfSeveralThreads) {
  const auto engine = make_hls();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) sum_and_check(*engine, 3000, static_cast<float>(t * 10 + i));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(HlsEngine, AcceptsWhatTheKernelsDo) {
  const auto engine = make_hls();
  std::vector<std::vector<float>> src(2, std::vector<float>(8));
  float sum[8];
  penstock_descriptor d = sum_of(src, sum, 4);
  EXPECT_TRUE(engine->accepts(d).ok());
  d.out_type = PENSTOCK_BF16;
  EXPECT_TRUE(engine->accepts(d).ok());
  d.type = d.out_type = PENSTOCK_F64;
  EXPECT_EQ(engine->accepts(d).code(), Code::unsupported);
  EXPECT_THAT(engine->accepts(d).message(), HasSubstr("sum of f64"));
  d.type = PENSTOCK_F32;
  d.out_type = PENSTOCK_INT8;
  d.block = 32;
  EXPECT_EQ(engine->accepts(d).code(), Code::unsupported);
  EXPECT_EQ(engine->accepts(make(PENSTOCK_OP_UPDATE, 2, 0, 0)).code(), Code::unsupported);
}

TEST(HlsEngine, NothingFollowsItsName) {
  const auto made = sim::hls_engine_factory().make("fast");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().message(), HasSubstr("'fast'"));
}

// A SELECT whose program's last operation is BALANCED of so many resources.
penstock_completion select_balanced(std::uint8_t resources, SelectCase* c,
                                    std::vector<penstock_result>* results) {
  c->program.n_ops = 1;
  std::memset(c->program.ops, 0, sizeof(c->program.ops));
  c->program.ops[0].op = PENSTOCK_SCORE_BALANCED;
  c->program.ops[0].n = resources;
  c->program.ops[0].weight = 1;
  results->resize(c->tasks.size());
  const auto engine = make_hls();
  auto queue = Queue::create(nullptr, QueueConfig{}).value();
  penstock_descriptor d = make(PENSTOCK_OP_SELECT, 3, 1, c->tasks.size());
  d.flags = PENSTOCK_FLAG_COMMIT;
  d.src[0] = penstock_address_host(c->table.header());
  d.src[1] = penstock_address_host(&c->program);
  d.src[2] = penstock_address_host(c->tasks.data());
  d.dst[0] = penstock_address_host(results->data());
  return run(*engine, *queue, d);
}

SelectCase small_case() {
  SelectRules rules;
  rules.gpus = rules.domains = false;
  rules.ties = 1u << PENSTOCK_TIE_LOWEST_ROW;
  rules.damaged = false;
  rules.opcodes = std::uint64_t{1} << PENSTOCK_FILTER_FIT;
  for (std::uint64_t seed = 1;; ++seed) {
    SelectCase c = make_select_case(seed, rules);
    if (c.tasks.size() >= 3 && c.table.header()->n_resources >= 3) return c;
  }
}

TEST(HlsEngine, SelectCommitsAndRaisesTheGeneration) {
  SelectCase c = small_case();
  SelectCase expected = c;
  std::vector<penstock_result> results;
  ASSERT_EQ(select_balanced(2, &c, &results).status, PENSTOCK_OK);
  expected.program = c.program;
  for (std::size_t i = 0; i < c.tasks.size(); ++i) {
    penstock_result result;
    scalar_select(expected.table.view(), expected.program, expected.tasks[i], true, &result);
    EXPECT_EQ(difference(result, results[i]), "") << i;
  }
  EXPECT_EQ(difference(expected.table, c.table), "");
}

TEST(HlsEngine, SelectRefusesWhatTheKernelHasNoUnitFor) {
  SelectCase c = small_case();
  const SelectCase before = c;
  std::vector<penstock_result> results;
  const penstock_completion done = select_balanced(3, &c, &results);
  EXPECT_EQ(done.status, PENSTOCK_UNSUPPORTED);
  EXPECT_EQ(done.field, PENSTOCK_FIELD_PROGRAM);
  EXPECT_EQ(done.detail, 0u);
  EXPECT_EQ(difference(before.table, c.table), "");
}

}  // namespace
}  // namespace penstock
