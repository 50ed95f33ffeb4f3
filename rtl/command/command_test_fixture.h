// Records and the fixture of the command processor's tests.
#ifndef PENSTOCK_RTL_COMMAND_COMMAND_TEST_FIXTURE_H_
#define PENSTOCK_RTL_COMMAND_COMMAND_TEST_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <memory>

#include "penstock/rtl/command/command_test_rig.h"

namespace penstock::rtl {

using Expected = CommandQueue::Expected;

inline constexpr std::uint64_t kPool = CommandRig::kPool;
inline constexpr std::uint64_t kSize = CommandRig::kBytes - CommandRig::kData;

inline sim::AxiConfig fixed(std::uint32_t latency) {
  sim::AxiConfig axi;
  axi.fixed = true;
  axi.read_latency = axi.write_latency = latency;
  return axi;
}

inline penstock_descriptor make(std::uint8_t opcode, std::uint8_t n_src, std::uint8_t n_dst) {
  penstock_descriptor d{};
  d.opcode = opcode;
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.n_src = n_src;
  d.n_dst = n_dst;
  return d;
}
inline penstock_descriptor make_copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
  penstock_descriptor d = make(PENSTOCK_OP_COPY, 1, 1);
  d.dst[0] = dst;
  d.src[0] = src;
  d.count = bytes;
  return d;
}
inline penstock_descriptor make_signal(std::uint64_t fence, std::uint64_t value) {
  penstock_descriptor d = make(PENSTOCK_OP_SIGNAL, 1, 1);
  d.dst[0] = fence;
  d.src[0] = value;
  return d;
}
inline penstock_descriptor make_wait(std::uint64_t fence, std::uint64_t value,
                                     std::uint32_t timeout_ms) {
  penstock_descriptor d = make(PENSTOCK_OP_WAIT, 2, 0);
  d.src[0] = fence;
  d.src[1] = value;
  d.timeout_ms = timeout_ms;
  return d;
}

class Command : public testing::Test {
 protected:
  CommandRig& start(const CommandRigConfig& config) {
    rig_ = std::make_unique<CommandRig>(config);
    return *rig_;
  }
  CommandRig& start(std::uint64_t seed) {
    CommandRigConfig config;
    config.axi.seed = seed;
    return start(config);
  }
  CommandQueue& queue(std::uint32_t number, std::uint32_t depth_log2 = 4) {
    return queues_.emplace_back(*rig_, number, depth_log2);
  }
  void run(std::uint64_t limit) {
    ASSERT_EQ(drain(*rig_, queues_, limit), "");
    for (int i = 0; i < 4000 && !rig_->slave.idle(); ++i) rig_->tick();
  }
  void TearDown() override {
    if (rig_ != nullptr) {
      EXPECT_THAT(rig_->slave.violations(), testing::IsEmpty());
    }
  }

  std::unique_ptr<CommandRig> rig_;
  std::list<CommandQueue> queues_;
};

}  // namespace penstock::rtl
#endif
