// The scoring engine behind an AXI memory and a stand-in for the windows, and what a job of it
// should have done.
#ifndef PENSTOCK_RTL_SCORE_SCORE_TEST_RIG_H_
#define PENSTOCK_RTL_SCORE_SCORE_TEST_RIG_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "Vpenstock_score.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/select_conformance.h"
#include "penstock/rtl/common/clocked_test.h"
#include "penstock/sim/verilated/axi_memory.h"
#include "penstock/sim/verilated/axi_port.h"

namespace penstock::rtl {

inline constexpr std::uint32_t kRows = 4096;  // as the model is made
inline constexpr std::uint64_t kBus = 0x4000000000;
inline constexpr penstock_address kPool = UINT64_C(3) << 56;

struct Job {
  std::uint64_t table, program, tasks, results;  // offsets in memory
  std::uint32_t count;
  bool commit;
};

struct Outcome {
  std::uint32_t status, field;
  std::uint64_t detail;
  std::uint64_t cycles = 0;  // from the job's handshake to its completion
  bool operator==(const Outcome& other) const {
    return status == other.status && field == other.field && detail == other.detail;
  }
};
inline std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  return out << "status " << o.status << " field " << o.field << " detail " << std::hex << o.detail
             << std::dec;
}

class Rig {
 public:
  explicit Rig(std::uint64_t seed, sim::AxiConfig config, std::uint64_t bytes = 8u << 20)
      : dut(static_cast<unsigned>(seed)), memory_bytes(bytes), lines_(bytes / 8) {
    memory.attach(kBus, lines_.data(), bytes);
    config.seed = seed;
    slave = std::make_unique<sim::AxiSlave>(memory, config);
    read_end = write_end = bytes;
    dut->sel_valid_i = 0;
    dut->sel_done_ready_i = 0;
    dut->win_ready_i = 0;
    dut->win_rsp_valid_i = 0;
    dut->sel_forget_i = 0;
    slave->drive(port_);
    dut.reset();
  }

  std::byte* at(std::uint64_t offset) {
    return reinterpret_cast<std::byte*>(lines_.data()) + offset;
  }
  void store(std::uint64_t offset, const void* data, std::uint64_t bytes) {
    if (bytes > 0) std::memcpy(at(offset), data, bytes);
  }

  void tick() {
    dut->eval();
    // The window service: ready by chance, an answer some cycles later.
    if (dut->win_valid_o && dut->win_ready_i) {
      EXPECT_EQ(dut->win_queue_o, queue_);
      window_wait_ = fixed ? 3 : 1 + dut.random() % 9;
      window_ok_ = window_allows(dut->win_address_o, dut->win_bytes_o, dut->win_write_o != 0);
      window_bus_ = kBus + (dut->win_address_o - kPool);
      windows.push_back(dut->win_address_o - kPool);
    }
    slave->sample(port_);
    dut->clk_i = 0;
    dut->eval();
    dut->clk_i = 1;
    dut->eval();
    ++cycles;
    slave->drive(port_);
    dut->win_ready_i = fixed || dut.chance(60);
    dut->win_rsp_valid_i = window_wait_ == 1;
    if (window_wait_ == 1) {
      dut->win_rsp_ok_i = window_ok_;
      dut->win_rsp_bus_i = window_ok_ ? window_bus_ : dut.random();
    } else {
      dut->win_rsp_ok_i = dut.random() & 1;
      dut->win_rsp_bus_i = dut.random();
    }
    if (window_wait_ > 0) --window_wait_;
    dut->eval();
    decisions += dut->decision_o;
    rows_scanned += dut->rows_scanned_o;
  }

  // Offers the job, and resets the block some cycles later.
  void give_up_after(const Job& job, std::uint64_t some) {
    offer(job);
    for (std::uint64_t i = 0; i < some; ++i) tick();
    // The memory sees nothing of the cycles in reset.
    slave->reset();
    slave->drive(port_);
    dut.reset();
    window_wait_ = 0;
    dut->win_rsp_valid_i = 0;
    dut->eval();
  }

  Outcome run(const Job& job, std::uint64_t limit = 4000000) {
    offer(job);
    const std::uint64_t begun = cycles;
    while (!dut->sel_done_valid_o && cycles - begun < limit) {
      tick();
      if (meanwhile) meanwhile();
    }
    EXPECT_TRUE(dut->sel_done_valid_o) << "no completion after " << limit << " cycles";
    EXPECT_EQ(dut->sel_done_queue_o, queue_);
    Outcome outcome{dut->sel_done_status_o, dut->sel_done_field_o, dut->sel_done_detail_o,
                    cycles - begun};
    for (std::uint64_t wait = fixed ? 0 : dut.random() % 3; wait > 0; --wait) {
      tick();
      EXPECT_TRUE(dut->sel_done_valid_o);
      EXPECT_EQ(dut->sel_done_status_o, outcome.status);
    }
    dut->sel_done_ready_i = 1;
    tick();
    dut->sel_done_ready_i = 0;
    dut->eval();
    EXPECT_TRUE(slave->idle()) << "bursts under way after the completion";
    EXPECT_THAT(slave->violations(), testing::IsEmpty());
    return outcome;
  }

  Clocked<Vpenstock_score> dut;
  sim::AxiMemory memory;
  std::unique_ptr<sim::AxiSlave> slave;
  std::uint64_t memory_bytes;
  std::uint64_t read_end, write_end;  // the queue's windows: [0, end) each
  std::uint64_t write_begin = 0;      // of the window for writing
  bool fixed = false;
  std::function<void()> meanwhile;  // after each cycle of a job
  std::uint64_t cycles = 0, decisions = 0, rows_scanned = 0;
  std::vector<std::uint64_t> windows;  // offsets that were asked for

 private:
  void offer(const Job& job) {
    queue_ = dut.random() % 64;
    for (std::uint64_t idle = fixed ? 0 : dut.random() % 4; idle > 0; --idle) tick();
    dut->sel_queue_i = queue_;
    dut->sel_commit_i = job.commit;
    dut->sel_count_i = job.count;
    dut->sel_table_i = kPool + job.table;
    dut->sel_program_i = kPool + job.program;
    dut->sel_tasks_i = kPool + job.tasks;
    dut->sel_results_i = kPool + job.results;
    dut->sel_valid_i = 1;
    dut->eval();
    EXPECT_TRUE(dut->sel_ready_o);
    tick();
    dut->sel_valid_i = 0;
    dut->sel_table_i = dut->sel_program_i = dut->sel_tasks_i = dut->sel_results_i = dut.random();
    dut->sel_count_i = dut.random() & 0x1fffff;
  }

  bool window_allows(std::uint64_t address, std::uint64_t bytes, bool write) const {
    const std::uint64_t begin = write ? write_begin : 0;
    const std::uint64_t end = write ? write_end : read_end;
    const std::uint64_t offset = address - kPool;
    return address >= kPool && offset >= begin && offset <= end && bytes <= end - offset;
  }

  std::vector<std::uint64_t> lines_;
  const sim::AxiPort port_ = PENSTOCK_AXI_PORT(*dut, m_axi);
  unsigned queue_ = 0;
  std::uint64_t window_wait_ = 0, window_bus_ = 0;
  bool window_ok_ = false;
};

// Where the operands of a case lie. Everything but the table is on 8 bytes only.
inline Job place(Rig& rig, SelectCase& c, std::uint64_t base, std::uint64_t skew) {
  const auto up = [](std::uint64_t offset) { return (offset + 63) / 64 * 64 + 64; };
  Job job{};
  job.count = static_cast<std::uint32_t>(c.tasks.size());
  job.commit = c.commit;
  job.table = base;
  job.program = up(job.table + c.table.bytes()) + 8 * (skew % 8);
  job.tasks = up(job.program + sizeof(penstock_program)) + 8 * (skew / 8 % 8);
  job.results = up(job.tasks + c.tasks.size() * sizeof(penstock_task)) + 8 * (skew / 64 % 8);
  rig.store(job.table, c.table.header(), c.table.bytes());
  rig.store(job.program, &c.program, sizeof(c.program));
  rig.store(job.tasks, c.tasks.data(), c.tasks.size() * sizeof(penstock_task));
  std::memset(rig.at(job.results - 64), 0xa5, c.tasks.size() * sizeof(penstock_result) + 128);
  return job;
}

// Compares results and table with what the definition says, and applies that to c.table. Empty if
// they are equal.
inline std::string wrong_after(Rig& rig, const Job& job, SelectCase& c) {
  for (std::size_t i = 0; i < c.tasks.size(); ++i) {
    penstock_result expected, actual;
    scalar_select(c.table.view(), c.program, c.tasks[i], c.commit, &expected);
    std::memcpy(&actual, rig.at(job.results + i * sizeof(actual)), sizeof(actual));
    const std::string wrong = difference(expected, actual);
    if (!wrong.empty()) return "task " + std::to_string(i) + ": " + wrong;
  }
  const std::uint64_t end = job.results + c.tasks.size() * sizeof(penstock_result);
  for (std::uint64_t i = 0; i < 64; ++i)
    if (*rig.at(end + i) != std::byte{0xa5} || *rig.at(job.results - 64 + i) != std::byte{0xa5})
      return "bytes beside the results were changed";
  HostTable actual = c.table;
  std::memcpy(static_cast<void*>(actual.header()), rig.at(job.table), actual.bytes());
  const std::string wrong = difference(c.table, actual);
  return wrong.empty() ? wrong : "table: " + wrong;
}

}  // namespace penstock::rtl

#endif
