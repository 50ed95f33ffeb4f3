// What the tests of the engine `opencl` share: the layer of faults, and that nothing is held when
// all is over.
#ifndef PENSTOCK_DRIVERS_OPENCL_OPENCL_RIG_TEST_H_
#define PENSTOCK_DRIVERS_OPENCL_OPENCL_RIG_TEST_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "penstock/drivers/opencl/fault_layer_test.h"
#include "penstock/drivers/opencl/opencl_engine.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock::opencl {

class OpenclTest : public PoolTest {
 protected:
  // Skips where there is no device, or no layer: another loader may want to be told differently.
  void SetUp() override;
  void TearDown() override;

  // A device as it is, with compiled kernels of the build's own cache.
  static Options options(const std::string& text = "");
  void open(const std::string& text = "") {
    auto core = open_core(options(text));
    ASSERT_TRUE(core.ok()) << core.status().to_string();
    core_ = core.value();
    engine_ = make_opencl_engine(core_);
  }
  void make_queue(Pool* pool = nullptr) { queue_ = Queue::create(pool, QueueConfig{}).value(); }
  const std::string& name() const { return core_->name(); }

  static penstock_descriptor copy_of(const void* src, void* dst, std::uint64_t bytes);
  // REDUCE of uint64.
  static penstock_descriptor sum_of(const std::vector<const void*>& src, void* dst,
                                    std::uint64_t count);
  // Advances until this many have completed; their statuses.
  std::vector<std::uint32_t> complete(std::size_t n);
  std::vector<std::uint32_t> run(const std::vector<penstock_descriptor>& descriptors) {
    for (const penstock_descriptor& d : descriptors) EXPECT_TRUE(queue_->submit(d));
    return complete(descriptors.size());
  }

  FaultLayer* faults_ = nullptr;
  std::shared_ptr<const Core> core_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace penstock::opencl
#endif
