#include "penstock/sim/verilated/verilated_card.h"

#include <Vpenstock_card.h>
#include <verilated.h>
#ifdef PENSTOCK_RTL_TRACE
#include <verilated_fst_c.h>
#endif

#include "penstock/base/status.h"
#include "penstock/rtl/coverage/save_coverage.h"
#include "penstock/sim/verilated/axi_port.h"

namespace penstock::sim {
namespace {

constexpr std::uint32_t kResetCycles = 8;
constexpr std::uint64_t kMostAccessCycles = 10000;

AxiConfig control_of(const VerilatedCardOptions& options) {
  AxiConfig config = options.memory;
  config.seed = 2 * config.seed;
  config.read_error_one_in = config.write_error_one_in = options.control_error_one_in;
  return config;
}
AxiConfig data_of(const VerilatedCardOptions& options) {
  AxiConfig config = options.memory;
  config.seed = 2 * config.seed + 1;
  return config;
}

}  // namespace

struct VerilatedCard::Parts {
  explicit Parts(const VerilatedCardOptions& options)
      : random(options.memory.seed ^ 0x5eed),
        fixed(options.memory.fixed),
        control(memory, control_of(options)),
        data(memory, data_of(options)) {
    context.randReset(2);
    // 0 would take a seed from the clock, and the generator takes 31 bits.
    context.randSeed(static_cast<int>(options.memory.seed % 0x7fffffff) + 1);
    context.assertOn(false);  // until it is reset nothing is promised
    if (!options.trace.empty()) context.traceEverOn(true);
    model = std::make_unique<Vpenstock_card>(&context, "card");
#ifdef PENSTOCK_RTL_TRACE
    if (!options.trace.empty()) {
      trace = std::make_unique<VerilatedFstC>();
      model->trace(trace.get(), 99);
      trace->open(options.trace.c_str());
    }
#endif
    control_port = PENSTOCK_AXI_PORT(*model, m_axi_ctl);
    data_port = PENSTOCK_AXI_PORT(*model, m_axi_data);
    idle_registers();
    model->rst_ni = 0;
    control.drive(control_port);
    data.drive(data_port);
    for (std::uint32_t i = 0; i < kResetCycles; ++i) cycle();
    model->rst_ni = 1;
    context.assertOn(true);
  }
  ~Parts() {
    model->final();
    rtl::save_coverage(context);
#ifdef PENSTOCK_RTL_TRACE
    if (trace != nullptr) trace->close();
#endif
  }

  void dump(std::uint64_t time) {
#ifdef PENSTOCK_RTL_TRACE
    if (trace != nullptr) trace->dump(time);
#else
    static_cast<void>(time);
#endif
  }

  // Nothing is asked for; the other signals carry garbage.
  void idle_registers() {
    const std::uint64_t garbage = random.next();
    model->s_axil_awvalid = model->s_axil_wvalid = model->s_axil_arvalid = 0;
    model->s_axil_awaddr = model->s_axil_araddr = garbage & 0xffff;
    model->s_axil_wdata = static_cast<std::uint32_t>(garbage >> 16);
    model->s_axil_wstrb = garbage >> 48 & 0xf;
    model->s_axil_bready = garbage >> 52 & 1;
    model->s_axil_rready = garbage >> 53 & 1;
  }

  // One rising edge. What is sampled before it are settled signals.
  void cycle() {
    model->clk_i = 0;
    model->eval();
    context.time(2 * cycles);
    dump(2 * cycles);
    if (model->rst_ni != 0) {
      control.sample(control_port);
      data.sample(data_port);
    }
    model->clk_i = 1;
    context.time(2 * cycles + 1);
    model->eval();
    dump(2 * cycles + 1);
    control.drive(control_port);
    data.drive(data_port);
    ++cycles;
  }
  // What the model shows before the next edge.
  void settle() {
    model->clk_i = 0;
    model->eval();
  }

  void check() const {
    for (const AxiSlave* slave : {&control, &data})
      PENSTOCK_CHECK(slave->violations().empty(), "the card's {} port: {}",
                     slave == &control ? "control" : "data", slave->violations().front());
  }

  Random random;
  const bool fixed;
  VerilatedContext context;
  std::unique_ptr<Vpenstock_card> model;
#ifdef PENSTOCK_RTL_TRACE
  std::unique_ptr<VerilatedFstC> trace;
#endif
  AxiMemory memory;
  AxiSlave control, data;
  AxiPort control_port{}, data_port{};
  std::uint64_t cycles = 0;
};

bool VerilatedCard::can_trace() {
#ifdef PENSTOCK_RTL_TRACE
  return true;
#else
  return false;
#endif
}

VerilatedCard::VerilatedCard(const VerilatedCardOptions& options)
    : parts_(std::make_unique<Parts>(options)) {}
VerilatedCard::~VerilatedCard() = default;

bool VerilatedCard::read(std::uint32_t offset, std::uint32_t* value) {
  Vpenstock_card& m = *parts_->model;
  bool asked = false, answered = false, good = false;
  m.s_axil_arvalid = 1;
  m.s_axil_araddr = offset & 0xffff;
  for (std::uint64_t i = 0; i < kMostAccessCycles && !answered; ++i) {
    m.s_axil_rready = parts_->fixed || !parts_->random.chance(4);
    parts_->settle();
    if (m.s_axil_arvalid != 0 && m.s_axil_arready != 0) asked = true;
    if (m.s_axil_rvalid != 0 && m.s_axil_rready != 0) {
      answered = true;
      good = m.s_axil_rresp == kAxiOkay;
      *value = m.s_axil_rdata;
    }
    parts_->cycle();
    if (asked) m.s_axil_arvalid = 0;
  }
  parts_->idle_registers();
  parts_->check();
  return good;
}

bool VerilatedCard::write(std::uint32_t offset, std::uint32_t value) {
  Vpenstock_card& m = *parts_->model;
  // Address and data come together or one after the other.
  const std::uint32_t order = parts_->fixed ? 0 : parts_->random.below(3);
  bool address_taken = false, data_taken = false, answered = false, good = false;
  m.s_axil_awaddr = offset & 0xffff;
  m.s_axil_wdata = value;
  m.s_axil_wstrb = 0xf;
  m.s_axil_awvalid = order != 1;
  m.s_axil_wvalid = order != 2;
  for (std::uint64_t i = 0; i < kMostAccessCycles && !answered; ++i) {
    m.s_axil_bready = parts_->fixed || !parts_->random.chance(4);
    parts_->settle();
    address_taken = address_taken || (m.s_axil_awvalid != 0 && m.s_axil_awready != 0);
    data_taken = data_taken || (m.s_axil_wvalid != 0 && m.s_axil_wready != 0);
    if (m.s_axil_bvalid != 0 && m.s_axil_bready != 0) {
      answered = true;
      good = m.s_axil_bresp == kAxiOkay;
    }
    parts_->cycle();
    m.s_axil_awvalid = !address_taken && (m.s_axil_awvalid != 0 || i >= 2);
    m.s_axil_wvalid = !data_taken && (m.s_axil_wvalid != 0 || i >= 2);
  }
  parts_->idle_registers();
  parts_->check();
  return good;
}

AxiMemory& VerilatedCard::memory() { return parts_->memory; }

std::uint64_t VerilatedCard::run(std::uint64_t cycles, bool stop_early) {
  const std::uint64_t written = parts_->control.counts().write_bursts;
  std::uint64_t ran = 0;
  while (ran < cycles) {
    parts_->cycle();
    ++ran;
    if (stop_early && parts_->control.counts().write_bursts != written) break;
  }
  parts_->check();
  return ran;
}

std::uint64_t VerilatedCard::cycle() const { return parts_->cycles; }
bool VerilatedCard::interrupt() const { return parts_->model->irq_o != 0; }
const AxiCounts& VerilatedCard::control_counts() const { return parts_->control.counts(); }
const AxiCounts& VerilatedCard::data_counts() const { return parts_->data.counts(); }

}  // namespace penstock::sim
