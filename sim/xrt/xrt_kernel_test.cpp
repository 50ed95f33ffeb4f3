// The HLS kernels through xrt::kernel, and the card beside them on one device.
#include <gmock/gmock.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <cstring>

#include "penstock/descriptor/register_map.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/hls/penstock_hls.h"
#include "penstock/sim/xrt/xrt_test.h"

namespace penstock::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kPool = 1 << 20;
constexpr std::uint64_t kProgram = 512 << 10, kTasks = 520 << 10, kResults = 600 << 10,
                        kStatus = 700 << 10;

class XrtKernelTest : public StandinTest {
 protected:
  void SetUp() override {
    standin("seed=2");
    device_ = xrt::device(0);
    uuid_ = device_.load_xclbin(file("all.xclbin"));
  }
  void TearDown() override {
    device_ = xrt::device();
    StandinTest::TearDown();
  }
  static std::uint64_t bit(std::uint32_t op) { return std::uint64_t{1} << op; }

  xrt::device device_;
  xrt::uuid uuid_;
};

TEST_F(XrtKernelTest, SelectPlacesAsTheDefinitionDoes) {
  xrt::kernel select(device_, uuid_, "penstock_hls_select");
  xrt::bo pool(device_, kPool, select.group_id(0));
  auto* bytes = pool.map<std::byte*>();
  SelectRules rules;
  rules.max_rows = 300;
  rules.opcodes = bit(PENSTOCK_FILTER_BITS) | bit(PENSTOCK_FILTER_FIT) | bit(PENSTOCK_FILTER_ROW) |
                  bit(PENSTOCK_SCORE_LEAST_ALLOCATED) | bit(PENSTOCK_SCORE_BITS);
  rules.ties = 1u << PENSTOCK_TIE_LOWEST_ROW;
  rules.gpus = rules.domains = rules.damaged = false;
  const auto scalar = scalar_kernels();
  std::uint64_t placed = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SelectCase c = make_select_case(seed, rules);
    const std::uint64_t n = c.tasks.size();
    ASSERT_LT(c.table.header()->bytes, kProgram);
    std::memcpy(bytes, c.table.header(), c.table.header()->bytes);
    std::memcpy(bytes + kProgram, &c.program, sizeof(c.program));
    std::memcpy(bytes + kTasks, c.tasks.data(), n * sizeof(penstock_task));
    std::memset(bytes + kStatus, 0xff, 16);
    pool.sync(XCL_BO_SYNC_BO_TO_DEVICE);
    const std::uint64_t none = 0;
    xrt::run run = select(pool, pool, pool, pool, none, none, kProgram, kTasks, kResults, kStatus,
                          static_cast<std::uint32_t>(n),
                          PENSTOCK_HLS_FORGET | (c.commit ? PENSTOCK_HLS_COMMIT : 0u));
    ASSERT_EQ(run.wait(), ERT_CMD_STATE_COMPLETED);
    std::uint32_t status;
    std::memcpy(&status, bytes + kStatus, 4);
    EXPECT_EQ(status, 0xffffffffu) << "nothing was synchronised yet";
    pool.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
    std::memcpy(&status, bytes + kStatus, 4);
    ASSERT_EQ(status, std::uint32_t{PENSTOCK_OK}) << "seed " << seed;
    TableView view = c.table.view();
    for (std::uint64_t i = 0; i < n; ++i) {
      penstock_result expected, actual;
      scalar->select(view, c.program, c.tasks[i], c.commit, &expected);
      std::memcpy(&actual, bytes + kResults + i * sizeof(actual), sizeof(actual));
      EXPECT_EQ(difference(expected, actual), "") << "seed " << seed << ", task " << i;
      placed += expected.status == PENSTOCK_OK ? 1 : 0;
    }
  }
  EXPECT_GT(placed, 10u);
}

TEST_F(XrtKernelTest, AKernelThatIsGivenNothingEndsInAnError) {
  xrt::kernel reduce(device_, uuid_, "penstock_hls_reduce");
  xrt::bo pool(device_, 4096, reduce.group_id(0));
  xrt::bo list(device_, 4096, reduce.group_id(3));
  const std::uint64_t none = 0, count = 5000;  // more than the pool has
  pool.map<std::byte*>();
  list.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  xrt::run run =
      reduce(pool, pool, pool, list, none, none, none, count, none, std::uint32_t{PENSTOCK_UINT8},
             std::uint32_t{PENSTOCK_SUM}, std::uint32_t{PENSTOCK_UINT8}, 1u, 1u);
  EXPECT_EQ(run.wait(), ERT_CMD_STATE_ERROR);
}

TEST_F(XrtKernelTest, TheCardIsBesideThem) {
  xrt::kernel reduce(device_, uuid_, "penstock_hls_reduce:{reduce_b}");
  auto made = bus("all.xclbin");
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ((*made)->read(PENSTOCK_REGISTER_ID), PENSTOCK_REGISTER_ID_RESET);
  EXPECT_THAT((*made)->description(), HasSubstr("penstock_card:card"));
  // Another file cannot be loaded while somebody uses this one.
  const Status refused = bus("card.xclbin").status();
  EXPECT_EQ(refused.code(), Code::busy) << refused.to_string();
  EXPECT_THAT(refused.message(), HasSubstr("cannot be loaded"));
}

}  // namespace
}  // namespace penstock::sim
