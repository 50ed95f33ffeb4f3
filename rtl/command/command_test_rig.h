// A Verilated penstock_command between simulated memory and three stand-ins for the engines, driven
// over its configuration bus as a driver does: rings, doorbells, completions.
//
// The stand-in for reduce moves and adds bytes: it reads a job's sources at some time after it took
// the job and writes when it ends, so that a source that is read too early gives wrong bytes. The
// one for sync works on memory, the one for score answers with what it was asked.
#ifndef PENSTOCK_RTL_COMMAND_COMMAND_TEST_RIG_H_
#define PENSTOCK_RTL_COMMAND_COMMAND_TEST_RIG_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vpenstock_command.h"
#include "penstock/descriptor/descriptor.h"
#include "penstock/rtl/common/clocked_test.h"
#include "penstock/sim/verilated/axi_memory.h"
#include "penstock/sim/verilated/axi_port.h"

namespace penstock::rtl {

// What the model was built with (CMakeLists.txt): its counters begin shortly before they wrap.
inline constexpr std::uint32_t kStart = 0xffffffe0;

// Register offsets (design of the register map).
namespace reg {
inline constexpr std::uint32_t kRing = 0x00, kCompletions = 0x08, kConfig = 0x10, kTimeout = 0x14,
                               kControl = 0x18, kTail = 0x1c, kHead = 0x20, kCompleted = 0x24,
                               kState = 0x28, kWindows = 0x2c;
inline std::uint32_t queue(std::uint32_t queue, std::uint32_t offset) {
  return 0x1000 + queue * 0x40 + offset;
}
inline std::uint32_t window(std::uint32_t queue, std::uint32_t window, std::uint32_t word) {
  return 0x8000 + queue * 0x200 + window * 0x20 + word * 4;
}
}  // namespace reg

struct CommandRigConfig {
  sim::AxiConfig axi;
  // Engines take and end jobs at once, where not.
  bool slow_engines = true;
};

struct Reported {
  std::uint32_t code, queue, sequence;
  std::uint64_t address;
  penstock_descriptor descriptor;
};

class CommandRig {
 public:
  static constexpr std::uint64_t kBus = 0x0034'5678'0000'0000;
  static constexpr std::uint64_t kBytes = 8 << 20;
  static constexpr std::uint32_t kQueues = 64;
  // The windows of most tests: all of the data area, at these penstock addresses.
  static constexpr std::uint64_t kPool = 0x0300'0000'0010'0000;
  static constexpr std::uint64_t kData = 4 << 20;  // of the bytes, from here on

  explicit CommandRig(const CommandRigConfig& config)
      : dut(static_cast<unsigned>(config.axi.seed)),
        slave(memory, config.axi),
        config_(config),
        words_(kBytes / 8),
        port_(PENSTOCK_AXI_PORT(*dut, m_axi)) {
    memory.attach(kBus, words_.data(), kBytes);
    reset();
  }

  // As the card does it in a soft reset: memory forgets what was under way.
  void reset() {
    dut->cfg_valid_i = 0;
    dut->enable_i = 1;
    slave.reset();
    jobs_.clear();
    for (Entry& entry : entries_) entry.active = false;
    select_.reset();
    slots_free_ = 3;
    drive_engines();
    slave.drive(port_);
    dut.reset();
    slave.drive(port_);
  }

  std::byte* at(std::uint64_t bus) {
    return reinterpret_cast<std::byte*>(words_.data()) + (bus - kBus);
  }
  std::uint64_t& word(std::uint64_t bus) { return words_[(bus - kBus) / 8]; }
  // The bus address of a penstock address in the data area.
  static std::uint64_t bus_of(std::uint64_t address) { return kBus + kData + (address - kPool); }

  void tick() {
    dut->clk_i = 0;
    dut.eval();
    slave.sample(port_);
    sample_engines();
    if (dut->queue_event_valid_o) events.push_back(dut->queue_event_queue_o);
    if (dut->error_valid_o) report();
    cfg_done_ = dut->cfg_valid_i && dut->cfg_ready_o;
    cfg_data_ = dut->cfg_rdata_o;
    cfg_error_ = dut->cfg_error_o;
    begun += dut->descriptor_o;
    dut.tick();
    slave.drive(port_);
    drive_engines();
  }

  // True if the access was answered with an error. Fails the test after too many cycles.
  bool access(bool write, std::uint32_t address, std::uint32_t* data) {
    dut->cfg_valid_i = 1;
    dut->cfg_write_i = write;
    dut->cfg_addr_i = static_cast<std::uint16_t>(address);
    dut->cfg_wdata_i = *data;
    for (int limit = 5000; limit > 0; --limit) {
      tick();
      if (!cfg_done_) continue;
      dut->cfg_valid_i = 0;
      *data = cfg_data_;
      return cfg_error_;
    }
    throw std::runtime_error("the configuration bus hangs");
  }
  bool write(std::uint32_t address, std::uint32_t value) { return access(true, address, &value); }
  bool write64(std::uint32_t address, std::uint64_t value) {
    const bool low = write(address, static_cast<std::uint32_t>(value));
    return write(address + 4, static_cast<std::uint32_t>(value >> 32)) || low;
  }
  std::uint32_t read(std::uint32_t address) {
    std::uint32_t value = 0;
    if (access(false, address, &value)) throw std::runtime_error("a register cannot be read");
    return value;
  }
  void set_window(std::uint32_t queue, std::uint32_t index, std::uint64_t base, std::uint64_t bytes,
                  std::uint64_t bus, std::uint32_t rights) {
    write64(reg::window(queue, index, 0), base);
    write64(reg::window(queue, index, 2), bytes);
    write64(reg::window(queue, index, 4), bus);
    write(reg::window(queue, index, 6), rights);
  }

  // What a stand-in does, besides.
  std::map<std::uint64_t, bool> failing;  // jobs with this destination or source fail; as a write
  std::uint64_t sync_cycles_per_ms = 200;
  bool hold_jobs = false;  // no job of reduce ends

  Clocked<Vpenstock_command> dut;
  sim::AxiMemory memory;
  sim::AxiSlave slave;
  std::vector<std::uint32_t> events;  // a queue for each
  std::vector<Reported> reports;
  std::uint64_t begun = 0;
  std::size_t most_jobs = 0;  // of reduce under way
  std::uint64_t jobs_ended = 0;

 private:
  struct Job {
    std::vector<std::uint64_t> src, dst;
    std::uint64_t count;
    std::uint32_t queue, slot;
    std::uint64_t read_at, end_at;
    bool was_read = false;
    std::vector<std::uint8_t> sum;
  };
  struct Entry {
    bool active = false, ended = false;
    std::uint32_t opcode = 0, count = 0, status = 0;
    std::uint64_t fence = 0, lines = 0, value = 0, deadline = 0, act_at = 0, detail = 0;
  };
  struct Select {
    std::uint32_t queue;
    std::uint64_t detail, end_at, table;
    int asked = 0;  // 1: its table's window is asked for, 2: known
  };

  std::uint64_t delay(std::uint32_t cycles) {
    return dut.cycles() + (config_.slow_engines ? dut.random() % cycles : 0);
  }

  void report() {
    Reported r{
        dut->error_code_o, dut->error_queue_o, dut->error_sequence_o, dut->error_address_o, {}};
    std::memcpy(&r.descriptor, dut->error_descriptor_o.data(), sizeof r.descriptor);
    reports.push_back(r);
  }

  void sample_engines() {
    if (dut->op_we_o) ops_[dut->op_slot_o][dut->op_index_o] = dut->op_bus_o;
    if (dut->job_valid_o && dut->job_ready_i) take_job();
    if (dut->done_valid_i && dut->done_ready_o) {
      jobs_.pop_front();
      ++jobs_ended;
    }
    if (dut->sel_valid_o && dut->sel_ready_i) take_select();
    if (dut->score_win_valid_i && dut->score_win_ready_o) win_valid_ = false;
    if (dut->score_win_rsp_valid_o) {
      select_->asked = 2;
      select_->detail ^= dut->score_win_rsp_ok_o ? dut->score_win_rsp_bus_o : 0;
    }
    if (dut->sel_done_valid_i && dut->sel_done_ready_o) select_.reset();
    if (dut->sync_valid_o && dut->sync_ready_i) take_sync();
    if (dut->sync_done_valid_i && dut->sync_done_ready_o) entries_[sync_done_].active = false;
    cancel_ = dut->sync_cancel_o;
  }

  void take_job() {
    Job job;
    job.queue = dut->job_queue_o;
    job.slot = dut->job_slot_o;
    job.count = dut->job_count_o;
    for (std::uint32_t i = 0; i < dut->job_sources_o; ++i) job.src.push_back(ops_[job.slot][i]);
    for (std::uint32_t i = 0; i < dut->job_destinations_o; ++i) {
      job.dst.push_back(dut->job_dst_o.at(2 * i) |
                        static_cast<std::uint64_t>(dut->job_dst_o.at(2 * i + 1)) << 32);
    }
    slots_free_ &= ~(1u << job.slot);
    job.read_at = delay(120);
    job.end_at = job.read_at + (config_.slow_engines ? dut.random() % 200 : 0);
    jobs_.push_back(job);
    most_jobs = std::max(most_jobs, jobs_.size());
  }

  void take_select() {
    const std::uint64_t detail = dut->sel_table_o + 3 * dut->sel_program_o + 5 * dut->sel_tasks_o +
                                 7 * dut->sel_results_o + 11 * dut->sel_count_o +
                                 13 * dut->sel_commit_o;
    select_ = Select{dut->sel_queue_o, detail, delay(100), dut->sel_table_o};
  }

  void take_sync() {
    Entry& e = entries_[dut->sync_queue_o];
    if (e.active) throw std::runtime_error("two jobs of sync in one queue");
    e = {true,
         false,
         dut->sync_opcode_o,
         dut->sync_count_o,
         0,
         dut->sync_fence_o,
         dut->sync_lines_o,
         dut->sync_value_o,
         dut.cycles() + dut->sync_timeout_ms_o * sync_cycles_per_ms,
         delay(80),
         0};
  }

  void work() {
    for (Job& job : jobs_) {
      if (job.was_read || job.read_at > dut.cycles()) continue;
      job.was_read = true;
      slots_free_ |= 1u << job.slot;
      job.sum.assign(job.count, 0);
      for (const std::uint64_t src : job.src)
        for (std::uint64_t i = 0; i < job.count; ++i)
          job.sum[i] =
              static_cast<std::uint8_t>(job.sum[i] + static_cast<std::uint8_t>(at(src)[i]));
    }
    for (std::uint32_t q = 0; q < kQueues; ++q) work_sync(q);
  }

  void work_sync(std::uint32_t q) {
    Entry& e = entries_[q];
    if (!e.active || e.ended || e.act_at > dut.cycles()) return;
    if (e.opcode != PENSTOCK_OP_WAIT) word(e.fence) = std::max(word(e.fence), e.value);
    std::uint64_t behind = 0;
    if (e.opcode != PENSTOCK_OP_SIGNAL)
      while (behind < e.count && word(e.lines + 64 * behind) >= e.value) ++behind;
    const bool wait = e.opcode == PENSTOCK_OP_WAIT;
    if (e.opcode == PENSTOCK_OP_SIGNAL || behind == e.count) {
      e.status = PENSTOCK_OK;
      e.detail = wait ? word(e.lines) : 0;
    } else if ((cancel_ >> q & 1) != 0) {
      e.status = PENSTOCK_CANCELLED;
    } else if (dut.cycles() >= e.deadline) {
      e.status = PENSTOCK_DEADLINE_EXCEEDED;
      e.detail = wait ? word(e.lines) : behind;
    } else {
      return;
    }
    e.ended = true;
  }

  void drive_engines() {
    work();
    dut->job_ready_i = jobs_.size() < 16 && (!config_.slow_engines || dut.chance(70));
    dut->slot_free_i = slots_free_;
    const bool end = !jobs_.empty() && jobs_.front().was_read &&
                     jobs_.front().end_at <= dut.cycles() && !hold_jobs;
    dut->done_valid_i = end;
    dut->done_queue_i = end ? jobs_.front().queue : static_cast<std::uint8_t>(dut.random() & 63);
    dut->done_error_i = 0;
    dut->done_bus_i = dut.random();
    if (end) end_job(jobs_.front());

    dut->sel_ready_i = !select_ && dut.chance(50);
    if (select_ && select_->asked == 0) {
      select_->asked = 1;
      win_valid_ = true;
    }
    dut->score_win_valid_i = win_valid_;
    dut->score_win_queue_i = select_ ? select_->queue : 0;
    dut->score_win_address_i = select_ ? select_->table : dut.random();
    dut->score_win_bytes_i = 4096;
    dut->score_win_write_i = 0;
    dut->sel_done_valid_i = select_ && select_->asked == 2 && select_->end_at <= dut.cycles();
    dut->sel_done_queue_i = select_ ? select_->queue : 0;
    dut->sel_done_status_i = PENSTOCK_OK;
    dut->sel_done_field_i = PENSTOCK_FIELD_TASK;
    dut->sel_done_detail_i = select_ ? select_->detail : dut.random();

    dut->sync_ready_i = dut.chance(50);
    std::uint64_t waiting = 0;
    dut->sync_done_valid_i = 0;
    for (std::uint32_t i = 0; i < kQueues; ++i) {
      const std::uint32_t q = (i + sync_done_) % kQueues;
      if (entries_[q].active && entries_[q].opcode != PENSTOCK_OP_SIGNAL)
        waiting |= std::uint64_t{1} << q;
      if (dut->sync_done_valid_i || !entries_[q].active || !entries_[q].ended) continue;
      dut->sync_done_valid_i = 1;
      sync_done_ = q;
      dut->sync_done_queue_i = q;
      dut->sync_done_status_i = entries_[q].status;
      dut->sync_done_field_i = 0;
      dut->sync_done_detail_i = entries_[q].detail;
    }
    dut->sync_waiting_i = waiting;
  }

  // May be called in several cycles for one job: what it writes is the same.
  void end_job(const Job& job) {
    for (const std::uint64_t dst : job.dst) {
      if (failing.contains(dst)) return fail_job(dst, true);
      std::memcpy(at(dst), job.sum.data(), job.count);
    }
    for (const std::uint64_t src : job.src)
      if (failing.contains(src)) return fail_job(src, false);
  }
  void fail_job(std::uint64_t bus, bool write) {
    dut->done_error_i = 1;
    dut->done_write_i = write;
    dut->done_bus_i = bus & ~std::uint64_t{63};
  }

  const CommandRigConfig config_;
  std::vector<std::uint64_t> words_;
  const sim::AxiPort port_;
  std::array<std::array<std::uint64_t, 64>, 2> ops_{};
  std::deque<Job> jobs_;
  std::array<Entry, kQueues> entries_{};
  std::optional<Select> select_;
  bool win_valid_ = false;
  std::uint32_t slots_free_ = 3;
  std::uint32_t sync_done_ = 0;
  std::uint64_t cancel_ = 0;
  bool cfg_done_ = false, cfg_error_ = false;
  std::uint32_t cfg_data_ = 0;
};

// One queue as a driver sees it. What each descriptor should end with is said when it is submitted.
class CommandQueue {
 public:
  // Lays the rings at a place of the queue's own, below the data area, and enables the queue with
  // one window over the data area.
  CommandQueue(CommandRig& rig, std::uint32_t queue, std::uint32_t depth_log2)
      : rig_(rig), queue_(queue), depth_(1u << depth_log2) {
    // Not on 128 bytes, so that records lie across pages where the ring is long enough.
    ring_ = CommandRig::kBus + 64 + queue * 0x8000;
    completions_ = ring_ + 0x4000;
    rig.write64(reg::queue(queue, reg::kRing), ring_);
    rig.write64(reg::queue(queue, reg::kCompletions), completions_);
    rig.write(reg::queue(queue, reg::kConfig), depth_log2);
    rig.write(reg::queue(queue, reg::kTimeout), 50);
    rig.set_window(queue, 0, CommandRig::kPool, CommandRig::kBytes - CommandRig::kData,
                   CommandRig::kBus + CommandRig::kData, 3);
    rig.write(reg::queue(queue, reg::kWindows), 1);
    enable();
  }
  void enable() {
    std::memset(rig_.at(completions_), 0xa5, depth_ * 32ull);
    submitted_ = polled_ = 0;
    expected_.clear();
    if (rig_.write(reg::queue(queue_, reg::kControl), 1))
      throw std::runtime_error("a queue cannot be enabled");
  }

  struct Expected {
    std::uint32_t status = 0, field = 0;
    std::uint64_t detail = 0;
    bool any_detail = false;
  };

  bool full() const { return submitted_ - polled_ == depth_; }
  // Writes a record into the ring; its cookie is made up.
  void submit(penstock_descriptor d, const Expected& expected) {
    d.cookie = 0x1234'0000'0000'0000ull + queue_ * 0x10000 + submitted_;
    std::memcpy(rig_.at(ring_ + ((kStart + submitted_) % depth_) * 128ull), &d, sizeof d);
    expected_.push_back(expected);
    ++submitted_;
  }
  void doorbell() {
    if (rig_.write(reg::queue(queue_, reg::kTail), kStart + submitted_))
      throw std::runtime_error("a doorbell is refused");
  }
  std::uint64_t record_bus(std::uint32_t n) const {
    return ring_ + ((kStart + n) % depth_) * 128ull;
  }
  std::uint64_t completion_bus(std::uint32_t n) const {
    return completions_ + ((kStart + n) % depth_) * 32ull;
  }
  std::uint32_t read(std::uint32_t offset) { return rig_.read(reg::queue(queue_, offset)); }
  bool write(std::uint32_t offset, std::uint32_t value) {
    return rig_.write(reg::queue(queue_, offset), value);
  }

  // Takes what completed; what was wrong, or "".
  std::string poll() {
    while (polled_ < submitted_) {
      penstock_completion c;
      std::memcpy(&c, rig_.at(completion_bus(polled_)), sizeof c);
      const std::uint64_t sequence = std::uint64_t{kStart} + polled_ + 1;
      if (c.sequence != sequence) return "";
      const Expected& e = expected_[polled_];
      const std::uint64_t cookie = 0x1234'0000'0000'0000ull + queue_ * 0x10000 + polled_;
      if (c.status != e.status || c.field != e.field || (!e.any_detail && c.detail != e.detail) ||
          (cookie_is_kept_ && c.cookie != cookie)) {
        return "queue " + std::to_string(queue_) + " completion " + std::to_string(polled_) +
               ": status " + std::to_string(c.status) + " field " + std::to_string(c.field) +
               " detail " + std::to_string(c.detail) + " cookie " + std::to_string(c.cookie) +
               ", expected " + std::to_string(e.status) + " " + std::to_string(e.field) + " " +
               std::to_string(e.detail);
      }
      std::memset(rig_.at(completion_bus(polled_)), 0x5a, sizeof c);
      ++polled_;
    }
    return "";
  }
  void cookies_are_lost() { cookie_is_kept_ = false; }  // of records that were never read
  std::uint32_t submitted() const { return submitted_; }
  std::uint32_t polled() const { return polled_; }
  std::uint32_t queue() const { return queue_; }
  std::uint32_t depth() const { return depth_; }

 private:
  CommandRig& rig_;
  const std::uint32_t queue_, depth_;
  std::uint64_t ring_ = 0, completions_ = 0;
  std::uint32_t submitted_ = 0, polled_ = 0;
  bool cookie_is_kept_ = true;
  std::vector<Expected> expected_;
};

// Runs until all queues have polled everything, or `limit` cycles; what was wrong, or "".
template <typename Queues>
std::string drain(CommandRig& rig, Queues& queues, std::uint64_t limit) {
  for (std::uint64_t i = 0; i < limit; ++i) {
    rig.tick();
    if (i % 16 != 0) continue;
    bool done = true;
    for (CommandQueue& queue : queues) {
      const std::string wrong = queue.poll();
      if (!wrong.empty()) return wrong;
      done = done && queue.polled() == queue.submitted();
    }
    if (done) return "";
  }
  std::string text = "hangs:";
  for (CommandQueue& queue : queues)
    if (queue.polled() != queue.submitted())
      text += " queue " + std::to_string(queue.queue()) + " at " + std::to_string(queue.polled()) +
              " of " + std::to_string(queue.submitted());
  return text;
}

}  // namespace penstock::rtl
#endif
