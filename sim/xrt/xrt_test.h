// For tests that drive a device behind XRT which is the stand-in.
#ifndef PENSTOCK_SIM_XRT_XRT_TEST_H_
#define PENSTOCK_SIM_XRT_XRT_TEST_H_

#include <cstdlib>
#include <string>

#include "penstock/drivers/card/card_engine.h"
#include "penstock/drivers/card/staged_engine.h"
#include "penstock/drivers/xrt/xrt_bus.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock::sim {

class StandinTest : public PoolTest {
 protected:
  // From here on: what PENSTOCK_XRT_STANDIN says.
  static void standin(const std::string& options) {
    setenv("XCL_EMULATION_MODE", "hw_emu", 1);
    setenv("XILINX_XRT", PENSTOCK_TEST_STANDIN, 1);
    setenv("PENSTOCK_XRT_STANDIN", options.c_str(), 1);
  }
  static std::string file(const std::string& name) {
    return std::string(PENSTOCK_TEST_STANDIN "/") + name;
  }
  static Result<std::unique_ptr<card::Bus>> bus(const std::string& xclbin = "card.xclbin",
                                                const std::string& more = "") {
    return card::xrt_bus_factory().make("xclbin=" + file(xclbin) + more);
  }
  static Status refused(const std::string& xclbin, const std::string& more = "") {
    return bus(xclbin, more).status();
  }
};

}  // namespace penstock::sim
#endif
