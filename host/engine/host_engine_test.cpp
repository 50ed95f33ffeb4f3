#include "penstock/engine/host_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "penstock/engine/accept.h"
#include "penstock/engine/select_conformance.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

penstock_descriptor make(std::uint8_t opcode, std::uint8_t n_src, std::uint8_t n_dst,
                         std::uint64_t count = 0) {
  penstock_descriptor d{};
  d.opcode = opcode;
  d.version = 1;
  d.n_src = n_src;
  d.n_dst = n_dst;
  d.count = count;
  return d;
}
penstock_descriptor sum_of_floats(const std::vector<const float*>& src, float* dst,
                                  std::uint64_t count) {
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE, static_cast<std::uint8_t>(src.size()), 1, count);
  d.type = d.out_type = PENSTOCK_F32;
  for (std::size_t s = 0; s < src.size(); ++s) d.src[s] = penstock_address_host(src[s]);
  d.dst[0] = penstock_address_host(dst);
  return d;
}

class HostEngineTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto engine = make_engine(GetParam());
    ASSERT_TRUE(engine.ok());
    engine_ = std::move(engine).value();
    queue_ = Queue::create(nullptr, QueueConfig{}).value();
  }
  penstock_completion run(const penstock_descriptor& d) {
    EXPECT_TRUE(queue_->submit(d));
    engine_->advance(*queue_);
    penstock_completion completion{};
    EXPECT_TRUE(queue_->poll(&completion));
    return completion;
  }
  static void expect(const penstock_completion& c, std::uint32_t status, std::uint32_t field,
                     std::uint64_t detail) {
    EXPECT_STREQ(penstock_status_name(c.status), penstock_status_name(status));
    EXPECT_STREQ(penstock_field_name(c.field), penstock_field_name(field));
    EXPECT_EQ(c.detail, detail);
  }
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Queue> queue_;
};
INSTANTIATE_TEST_SUITE_P(Engines, HostEngineTest, testing::Values("scalar", "simd"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(HostEngineTest, CompletesInOrderWithTheCookie) {
  float a[] = {1, 2}, b[] = {10, 20}, sum[2], again[2];
  penstock_descriptor first = sum_of_floats({a, b}, sum, 2);
  first.cookie = 77;
  penstock_descriptor second = sum_of_floats({sum, b}, again, 2);  // reads what the first wrote
  second.cookie = 78;
  ASSERT_TRUE(queue_->submit(first));
  ASSERT_TRUE(queue_->submit(second));
  EXPECT_EQ(engine_->advance(*queue_), 2u);
  penstock_completion c;
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(queue_->poll(&c));
    EXPECT_EQ(c.cookie, 77 + i);
    EXPECT_EQ(c.sequence, 1 + i);
    EXPECT_EQ(c.status, 0u);
  }
  EXPECT_EQ(again[0], 21.0f);
  EXPECT_EQ(again[1], 42.0f);
}

TEST_P(HostEngineTest, CountZeroTouchesNothing) {
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 1);
  d.src[0] = penstock_address_host(reinterpret_cast<void*>(8));
  d.dst[0] = penstock_address_host(reinterpret_cast<void*>(16));
  expect(run(d), PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0);
}

TEST_P(HostEngineTest, AddressesWithoutMemory) {
  float a[1] = {1}, sum[1] = {5};
  penstock_descriptor d = sum_of_floats({a, a}, sum, 1);
  d.src[1] = 4096;  // a pool offset, and there is no pool
  expect(run(d), PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, 4096);
  d = sum_of_floats({a, a}, sum, 1);
  d.dst[0] = penstock_address_make(3, 64);
  expect(run(d), PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, d.dst[0]);
  d = make(PENSTOCK_OP_SIGNAL, 1, 1);
  d.dst[0] = 64;
  expect(run(d), PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_DST, 64);
  d = make(PENSTOCK_OP_WAIT, 2, 0);
  d.src[0] = 128;
  expect(run(d), PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, 128);
  EXPECT_EQ(sum[0], 5.0f);
}

TEST_P(HostEngineTest, ASourceListThatNamesNoMemory) {
  float a[1] = {1}, sum[1] = {5};
  alignas(8) penstock_address list[9];
  for (penstock_address& entry : list) entry = penstock_address_host(a);
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE, 9, 1, 1);
  d.type = d.out_type = PENSTOCK_F32;
  d.flags = PENSTOCK_FLAG_SRC_LIST;
  d.src[0] = penstock_address_host(list);
  d.dst[0] = penstock_address_host(sum);
  expect(run(d), PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0);
  EXPECT_EQ(sum[0], 9.0f);
  list[8] = penstock_address_make(0x77, 1);
  expect(run(d), PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, list[8]);
  d.src[0] = 64;
  expect(run(d), PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, 64);
}

#if defined(__SSE__)
TEST_P(HostEngineTest, TheCallersFloatingPointModeDoesNotCount) {
  const unsigned before = _mm_getcsr();
  float a[20], b[20], sum[20];
  for (int i = 0; i < 20; ++i) {
    a[i] = 0x1p-149f;
    b[i] = 0x1p-148f;
  }
  a[0] = 1.0f;
  b[0] = 0x1p-25f;
  _mm_setcsr(0x1f80 | 0x8040 | 0x4000);  // flush results and inputs, round up
  const unsigned set = _mm_getcsr();
  run(sum_of_floats({a, b}, sum, 20));
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after & 0xffc0, set & 0xffc0);  // the modes; the lower bits are what happened
  EXPECT_EQ(sum[0], 1.0f);
  for (int i = 1; i < 20; ++i) EXPECT_EQ(sum[i], 0x1.8p-148f);
}
#endif

TEST_P(HostEngineTest, TableProgramTaskAndUpdateAreNamed) {
  SelectCase c = make_select_case(3);
  c.tasks.resize(2, c.tasks.front());
  std::vector<penstock_result> results(2);
  penstock_descriptor d = make(PENSTOCK_OP_SELECT, 3, 1, 2);
  d.src[0] = penstock_address_host(c.table.header());
  d.src[1] = penstock_address_host(&c.program);
  d.src[2] = penstock_address_host(c.tasks.data());
  d.dst[0] = penstock_address_host(results.data());
  expect(run(d), PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0);

  const HostTable sound = c.table;
  d.flags = PENSTOCK_FLAG_COMMIT;
  c.tasks[1].row = -2;
  const penstock_completion bad_task = run(d);
  expect(bad_task, PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_TASK, 1);
  EXPECT_EQ(difference(sound, c.table), "");  // the first task was not placed, either
  c.tasks[1].row = -1;

  c.program.magic ^= 1;
  EXPECT_EQ(run(d).field, std::uint32_t{PENSTOCK_FIELD_PROGRAM});
  c.program.magic ^= 1;

  penstock_descriptor overlapping = d;
  overlapping.dst[0] = d.src[2];
  expect(run(overlapping), PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.src[2]);
  overlapping.dst[0] = d.src[0] + 4096;
  expect(run(overlapping), PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, d.src[0] + 4096);

  std::vector<penstock_update> updates(3);
  for (penstock_update& update : updates) update.field = PENSTOCK_UPDATE_ALLOCATABLE;
  updates[2].column = 1000;
  penstock_descriptor u = make(PENSTOCK_OP_UPDATE, 2, 0, 3);
  u.src[0] = d.src[0];
  u.src[1] = penstock_address_host(updates.data());
  expect(run(u), PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_UPDATE, 2);
  u.src[1] = u.src[0] + 512;
  expect(run(u), PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_SRC, u.src[1]);
  EXPECT_EQ(difference(sound, c.table), "");

  c.table.header()->magic ^= 1;
  expect(run(d), PENSTOCK_CORRUPT, PENSTOCK_FIELD_TABLE, d.src[0]);
  u.src[1] = penstock_address_host(updates.data());
  expect(run(u), PENSTOCK_CORRUPT, PENSTOCK_FIELD_TABLE, u.src[0]);
}

TEST(Accept, CapabilitiesDecide) {
  auto engine = make_engine("scalar");
  ASSERT_TRUE(engine.ok());
  Capabilities c = (*engine)->capabilities();
  float a[4], b[4];
  const penstock_descriptor sum = sum_of_floats({a, a, a}, b, 4);
  EXPECT_TRUE(accept_descriptor(c, sum).ok());

  const auto refused = [&](Capabilities changed, const penstock_descriptor& d) {
    std::uint32_t field = 0;
    std::uint64_t detail = 0;
    EXPECT_EQ(check_descriptor(changed, d, &field, &detail), std::uint32_t{PENSTOCK_UNSUPPORTED});
    EXPECT_EQ(accept_descriptor(changed, d).code(), Code::unsupported);
    return std::string(penstock_field_name(field));
  };
  Capabilities changed = c;
  changed.opcodes = 1u << PENSTOCK_OP_COPY;
  EXPECT_EQ(refused(changed, sum), "opcode");
  changed = c;
  changed.redops[PENSTOCK_F32] = 0;
  EXPECT_EQ(refused(changed, sum), "type");
  changed.redops[PENSTOCK_F32] = 1u << PENSTOCK_MAX;
  EXPECT_EQ(refused(changed, sum), "redop");
  EXPECT_THAT(accept_descriptor(changed, sum).message(), HasSubstr("sum of f32"));
  changed = c;
  changed.max_sources = 2;
  EXPECT_EQ(refused(changed, sum), "n_src");
  changed = c;
  changed.max_bytes = 15;
  EXPECT_EQ(refused(changed, sum), "count");
  changed.max_bytes = 16;
  EXPECT_TRUE(accept_descriptor(changed, sum).ok());
  changed = c;
  changed.host_memory = false;
  EXPECT_EQ(refused(changed, sum), "dst");
  penstock_descriptor wait = make(PENSTOCK_OP_WAIT, 2, 0);
  wait.src[1] = penstock_address_host(a);  // a value that looks like one
  EXPECT_TRUE(accept_descriptor(changed, wait).ok());
}

TEST(Accept, SentencesNameTheField) {
  auto engine = make_engine("scalar");
  ASSERT_TRUE(engine.ok());
  penstock_descriptor d = make(PENSTOCK_OP_REDUCE, 65, 1);
  const Status status = (*engine)->accepts(d);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), HasSubstr("scalar: REDUCE: n_src is 0x41"));
  EXPECT_THAT(status.message(), HasSubstr("1 to 64"));
  d = make(PENSTOCK_OP_NOP, 0, 0);
  d.count = 3;
  EXPECT_THAT((*engine)->accepts(d).message(), HasSubstr("count is 0x3"));
  EXPECT_THAT(describe_refusal(d, PENSTOCK_OUT_OF_RANGE, PENSTOCK_FIELD_SRC, 0x40).message(),
              HasSubstr("windows"));
  EXPECT_TRUE(describe_refusal(d, PENSTOCK_OK, 0, 0).ok());
}

}  // namespace
}  // namespace penstock
