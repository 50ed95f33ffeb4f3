// The checkers see each fault that they name, and nothing in traffic that is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "Vaxi_check_harness.h"
#include "penstock/rtl/common/clocked_test.h"

namespace penstock::rtl {
namespace {

using testing::HasSubstr;
using testing::Not;

// A master and a memory of one port, cycle by cycle. Whatever a step does not set is idle.
class Port {
 public:
  Port() : dut_(1) {
    dut_.tolerate_errors();
    idle();
    dut_->off_i = 0;
    dut_.reset();
    step();
  }
  Vaxi_check_harness* operator->() { return dut_.operator->(); }

  void step() {
    dut_.tick();
    idle();
  }
  void aw(std::uint64_t address, unsigned beats, unsigned id, bool taken = true) {
    dut_->axi_awvalid = 1;
    dut_->axi_awready = taken;
    dut_->axi_awaddr = address;
    dut_->axi_awlen = beats - 1;
    dut_->axi_awid = id;
  }
  void w(std::uint32_t word, bool last, bool taken = true) {
    dut_->axi_wvalid = 1;
    dut_->axi_wready = taken;
    for (unsigned i = 0; i < 16; ++i) dut_->axi_wdata[i] = word + i;
    dut_->axi_wstrb = ~std::uint64_t{0};
    dut_->axi_wlast = last;
  }
  void b(unsigned id, unsigned resp = 0, bool taken = true) {
    dut_->axi_bvalid = 1;
    dut_->axi_bready = taken;
    dut_->axi_bid = id;
    dut_->axi_bresp = resp;
  }
  void ar(std::uint64_t address, unsigned beats, unsigned id, bool taken = true) {
    dut_->axi_arvalid = 1;
    dut_->axi_arready = taken;
    dut_->axi_araddr = address;
    dut_->axi_arlen = beats - 1;
    dut_->axi_arid = id;
  }
  void r(unsigned id, bool last, unsigned resp = 0, bool taken = true, std::uint32_t word = 7) {
    dut_->axi_rvalid = 1;
    dut_->axi_rready = taken;
    for (unsigned i = 0; i < 16; ++i) dut_->axi_rdata[i] = word + i;
    dut_->axi_rid = id;
    dut_->axi_rresp = resp;
    dut_->axi_rlast = last;
  }
  void lite_write(bool address, bool data, std::uint32_t word = 5, bool taken = true) {
    dut_->axil_awvalid = address;
    dut_->axil_awready = address && taken;
    dut_->axil_awaddr = static_cast<std::uint16_t>(word);
    dut_->axil_wvalid = data;
    dut_->axil_wready = data && taken;
    dut_->axil_wdata = word;
    dut_->axil_wstrb = 0xf;
  }
  void lite_b(unsigned resp = 0, bool taken = true) {
    dut_->axil_bvalid = 1;
    dut_->axil_bready = taken;
    dut_->axil_bresp = resp;
  }
  void lite_ar(std::uint16_t address, bool taken = true) {
    dut_->axil_arvalid = 1;
    dut_->axil_arready = taken;
    dut_->axil_araddr = address;
  }
  void lite_r(std::uint32_t word, unsigned resp = 0, bool taken = true) {
    dut_->axil_rvalid = 1;
    dut_->axil_rready = taken;
    dut_->axil_rdata = word;
    dut_->axil_rresp = resp;
  }

 private:
  void idle() {
    // What is not valid carries garbage.
    dut_->axi_awaddr = dut_.random();
    dut_->axi_araddr = dut_.random();
    dut_->axi_wlast = dut_.random() & 1;
    dut_->axi_rlast = dut_.random() & 1;
    dut_->axi_rid = dut_.random() & 3;
    dut_->axi_bid = dut_.random() & 3;
    dut_->axi_awvalid = dut_->axi_wvalid = dut_->axi_bvalid = 0;
    dut_->axi_arvalid = dut_->axi_rvalid = 0;
    dut_->axi_awready = dut_->axi_wready = dut_->axi_bready = 0;
    dut_->axi_arready = dut_->axi_rready = 0;
    dut_->axil_awvalid = dut_->axil_wvalid = dut_->axil_bvalid = 0;
    dut_->axil_arvalid = dut_->axil_rvalid = 0;
    dut_->axil_awready = dut_->axil_wready = dut_->axil_bready = 0;
    dut_->axil_arready = dut_->axil_rready = 0;
  }
  Clocked<Vaxi_check_harness> dut_;
};

// What the checkers print while `play` runs, and for two cycles after it.
std::string said(const std::function<void(Port&)>& play) {
  testing::internal::CaptureStdout();
  {
    Port port;
    play(port);
    port.step();
    port.step();
  }
  return testing::internal::GetCapturedStdout();
}

// Two writes and two reads whose parts come at once, late, and between each other.
void good_traffic(Port& port) {
  port.aw(0x1fc0, 1, 1, false);
  port.step();
  port.aw(0x1fc0, 1, 1);
  port.ar(0x2000, 2, 3);
  port.step();
  port.w(100, true, false);
  port.aw(0x4000, 16, 1);
  port.r(3, false, 0, false);
  port.step();
  port.w(100, true);
  port.r(3, false);
  port.step();
  port.ar(0x3000, 1, 3);
  port.b(1, 2, false);
  port.step();
  port.b(1, 2);
  port.w(0, false);
  port.r(3, true, 3);
  port.step();
  for (unsigned beat = 1; beat < 15; ++beat) {
    port.w(beat, false);
    port.step();
  }
  port.w(15, true);
  port.ar(0x5000, 1, 0);
  port.step();
  port.r(0, true);
  port.b(1);
  port.step();
  port.r(3, true);
  port.step();
  port.lite_write(true, false);
  port.step();
  port.lite_write(false, true, 6, false);
  port.step();
  port.lite_write(false, true, 6);
  port.lite_ar(8);
  port.step();
  port.lite_b(0, false);
  port.lite_r(3, 2, false);
  port.step();
  port.lite_b();
  port.lite_r(3, 2);
  port.step();
}

TEST(AxiCheck, FindsNothingInTrafficThatIsRight) {
  EXPECT_THAT(said(good_traffic), Not(HasSubstr("axi")));
}

struct Fault {
  const char* name;  // what is said
  std::function<void(Port&)> play;
};

void write(Port& port, std::uint64_t address, unsigned beats, unsigned id) {
  port.aw(address, beats, id);
  port.step();
  for (unsigned beat = 0; beat < beats; ++beat) {
    port.w(beat, beat + 1 == beats);
    port.step();
  }
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = {
      {"axi.stable.aw", [](Port& p) { p.aw(0x1000, 1, 0, false), p.step(); }},
      {"axi.stable.aw",
       [](Port& p) { p.aw(0x1000, 1, 0, false), p.step(), p.aw(0x1040, 1, 0), p.step(); }},
      {"axi.stable.aw",
       [](Port& p) { p.aw(0x1000, 1, 0, false), p.step(), p.aw(0x1000, 1, 1), p.step(); }},
      {"axi.stable.aw",
       [](Port& p) { p.aw(0x1000, 1, 0, false), p.step(), p.aw(0x1000, 2, 0), p.step(); }},
      {"axi.stable.ar", [](Port& p) { p.ar(0x1000, 1, 0, false), p.step(); }},
      {"axi.stable.ar",
       [](Port& p) { p.ar(0x1000, 1, 0, false), p.step(), p.ar(0x1000, 3, 0), p.step(); }},
      {"axi.stable.w",
       [](Port& p) {
         p.aw(0x1000, 2, 0), p.step();
         p.w(1, false, false), p.step(), p.w(2, false), p.step();
       }},
      {"axi.stable.w",
       [](Port& p) {
         p.aw(0x1000, 2, 0), p.step();
         p.w(1, false, false), p.step(), p.w(1, false), p->axi_wstrb = 1, p.step();
       }},
      {"axi.stable.w",
       [](Port& p) { p.aw(0x1000, 2, 0), p.step(), p.w(1, false, false), p.step(); }},
      {"axi.stable.b",
       [](Port& p) { write(p, 0x1000, 1, 2), p.b(2, 0, false), p.step(), p.b(2, 2), p.step(); }},
      {"axi.stable.r",
       [](Port& p) {
         p.ar(0x1000, 1, 2), p.step();
         p.r(2, true, 0, false, 7), p.step(), p.r(2, true, 0, true, 8), p.step();
       }},
      {"axi.reset",
       [](Port& p) { p->rst_ni = 0, p.step(), p->rst_ni = 1, p.ar(0x1000, 1, 0), p.step(); }},
      {"axi.address", [](Port& p) { p.aw(0x1020, 1, 0), p.step(); }},
      {"axi.address", [](Port& p) { p.ar(0x1001, 1, 0), p.step(); }},
      {"axi.length", [](Port& p) { p.aw(0x1000, 17, 0), p.step(); }},
      {"axi.length", [](Port& p) { p.ar(0x1000, 17, 0), p.step(); }},
      {"axi.page", [](Port& p) { p.aw(0x1fc0, 2, 0), p.step(); }},
      {"axi.page", [](Port& p) { p.ar(0x1e00, 9, 0), p.step(); }},
      {"axi.early_data", [](Port& p) { p.aw(0x1000, 1, 0), p.w(1, true), p.step(); }},
      {"axi.early_data", [](Port& p) { write(p, 0x1000, 1, 0), p.w(1, true), p.step(); }},
      {"axi.wlast", [](Port& p) { p.aw(0x1000, 2, 0), p.step(), p.w(1, true), p.step(); }},
      {"axi.wlast", [](Port& p) { p.aw(0x1000, 1, 0), p.step(), p.w(1, false), p.step(); }},
      {"axi.b", [](Port& p) { p.aw(0x1000, 1, 0), p.step(), p.b(0), p.step(); }},
      {"axi.b", [](Port& p) { write(p, 0x1000, 1, 0), p.b(1), p.step(); }},
      {"axi.b", [](Port& p) { write(p, 0x1000, 1, 0), p.b(0), p.step(), p.b(0), p.step(); }},
      {"axi.r", [](Port& p) { p.r(0, true), p.step(); }},
      {"axi.r", [](Port& p) { p.ar(0x1000, 1, 0), p.r(0, true), p.step(); }},
      {"axi.r", [](Port& p) { p.ar(0x1000, 1, 0), p.step(), p.r(1, true), p.step(); }},
      {"axi.rlast", [](Port& p) { p.ar(0x1000, 2, 0), p.step(), p.r(0, true), p.step(); }},
      {"axi.rlast", [](Port& p) { p.ar(0x1000, 1, 0), p.step(), p.r(0, false), p.step(); }},
      {"axi.resp", [](Port& p) { p.ar(0x1000, 1, 0), p.step(), p.r(0, true, 1), p.step(); }},
      {"axi.resp", [](Port& p) { write(p, 0x1000, 1, 0), p.b(0, 1), p.step(); }},
      {"axi.outstanding",
       [](Port& p) {
         for (unsigned i = 0; i < 5; ++i) p.ar(0x1000, 1, 3), p.step();
       }},
      {"axi.outstanding",
       [](Port& p) {
         for (unsigned i = 0; i < 5; ++i) write(p, 0x1000, 1, 3);
       }},
      {"axil.stable.aw", [](Port& p) { p.lite_write(true, false, 4, false), p.step(); }},
      {"axil.stable.w",
       [](Port& p) {
         p.lite_write(false, true, 4, false), p.step(), p.lite_write(false, true, 5), p.step();
       }},
      {"axil.stable.b",
       [](Port& p) { p.lite_write(true, true), p.step(), p.lite_b(0, false), p.step(); }},
      {"axil.stable.ar", [](Port& p) { p.lite_ar(4, false), p.step(), p.lite_ar(8), p.step(); }},
      {"axil.stable.r",
       [](Port& p) {
         p.lite_ar(4), p.step(), p.lite_r(1, 0, false), p.step(), p.lite_r(2), p.step();
       }},
      {"axil.b", [](Port& p) { p.lite_write(true, false), p.step(), p.lite_b(), p.step(); }},
      {"axil.b", [](Port& p) { p.lite_write(false, true), p.step(), p.lite_b(), p.step(); }},
      {"axil.r", [](Port& p) { p.lite_r(1), p.step(); }},
      {"axil.resp", [](Port& p) { p.lite_write(true, true), p.step(), p.lite_b(1), p.step(); }},
      {"axil.resp", [](Port& p) { p.lite_ar(4), p.step(), p.lite_r(1, 1), p.step(); }},
  };
  return all;
}

TEST(AxiCheck, FindsEachFaultAndNamesIt) {
  unsigned number = 0;
  for (const Fault& fault : faults()) {
    EXPECT_THAT(said(fault.play), HasSubstr(fault.name + std::string(":"))) << "fault " << number;
    ++number;
  }
  EXPECT_GE(number, 40U);
}

TEST(AxiCheck, IsSilentWhileItIsOff) {
  for (const Fault& fault : faults()) {
    if (std::string(fault.name).starts_with("axil") || std::string(fault.name) == "axi.reset") {
      continue;
    }
    EXPECT_THAT(said([&](Port& port) {
                  port->off_i = 1;
                  fault.play(port);
                  port.step();
                  port->off_i = 0;
                  good_traffic(port);
                }),
                Not(HasSubstr("axi")))
        << fault.name;
  }
}

}  // namespace
}  // namespace penstock::rtl
