// Drives a Verilated penstock_reduce as the command processor does: addresses of sources into a
// free slot, jobs in order, ends in order. Behind it is simulated memory whose every byte is
// compared with what is expected, also those that nothing should write.
#ifndef PENSTOCK_RTL_REDUCE_REDUCE_TEST_RIG_H_
#define PENSTOCK_RTL_REDUCE_REDUCE_TEST_RIG_H_

#include <verilated.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "penstock/rtl/coverage/save_coverage.h"
#include "penstock/sim/incoherent/random.h"
#include "penstock/sim/verilated/axi_memory.h"
#include "penstock/sim/verilated/axi_port.h"

namespace penstock::rtl {

// Offsets are into the rig's memory.
struct ReduceJob {
  bool copy = false;
  std::uint32_t type = 0;
  std::uint32_t redop = 0;
  std::uint32_t out_type = 0;
  std::uint64_t count = 0;
  std::uint64_t scale = 0;
  std::vector<std::uint64_t> src;
  std::vector<std::uint64_t> dst;
};

struct ReduceEnd {
  std::uint32_t queue = 0;
  bool error = false;
  bool write = false;
  std::uint64_t offset = 0;  // of the bus address, where `error`
  std::uint64_t cycle = 0;
};

struct ReduceRigConfig {
  sim::AxiConfig axi;
  std::uint64_t bytes = 1 << 20;
  // One cycle of so many offers nothing though there is a job, takes no end though there is one.
  std::uint32_t pause_one_in = 0;
};

template <typename Model>
class ReduceRig {
 public:
  static constexpr std::uint64_t kBus = 0x0012'3456'7000'0000;

  explicit ReduceRig(const ReduceRigConfig& config)
      : words_(config.bytes / 8),
        slave_(memory_, config.axi),
        config_(config),
        random_(config.axi.seed * 7 + 1) {
    context_.randReset(2);
    context_.randSeed(static_cast<int>(config.axi.seed));
    dut_ = std::make_unique<Model>(&context_);
    port_ = PENSTOCK_AXI_PORT(*dut_, m_axi);
    memory_.attach(kBus, words_.data(), config.bytes);
    for (std::uint64_t& word : words_) word = random_.next();
    expected_ = words_;
    slave_.drive(port_);
    dut_->op_we_i = 0;
    dut_->job_valid_i = 0;
    dut_->done_ready_i = 0;
    dut_->rst_ni = 0;
    for (int i = 0; i < 4; ++i) clock([] {});
    dut_->rst_ni = 1;
  }
  ~ReduceRig() {
    dut_->final();
    save_coverage(context_);
  }

  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(words_.data()); }
  // The memory as it should be when all jobs have ended; the caller keeps it so.
  std::uint8_t* expected() { return reinterpret_cast<std::uint8_t*>(expected_.data()); }
  std::uint64_t size() const { return config_.bytes; }
  sim::AxiMemory& memory() { return memory_; }
  const sim::AxiSlave& slave() const { return slave_; }
  sim::Random& random() { return random_; }
  std::uint64_t cycle() const { return cycle_; }
  const std::vector<ReduceEnd>& ends() const { return ends_; }
  // The cycle in which each job was accepted.
  const std::vector<std::uint64_t>& begins() const { return begins_; }
  // Jobs that had been accepted when an older one had not ended yet, at most.
  std::size_t most_under_way() const { return most_under_way_; }
  // Cycles in which both slots were taken.
  std::uint64_t full_slots() const { return full_slots_; }

  // Queues are 0, 1, .. 63, 0, .. in the order of the calls.
  void submit(ReduceJob job) { jobs_.push_back(std::move(job)); }
  // Until every job has ended and memory is idle; false if that takes more than `limit` cycles.
  bool run(std::uint64_t limit) {
    for (const std::uint64_t end = cycle_ + limit; cycle_ < end; tick())
      if (ends_.size() == jobs_.size() && slave_.idle()) return true;
    return ends_.size() == jobs_.size() && slave_.idle();
  }
  // Where memory is not as expected: the first offset, or -1.
  std::int64_t difference() const {
    if (words_ == expected_) return -1;
    const auto* a = reinterpret_cast<const std::uint8_t*>(words_.data());
    const auto* b = reinterpret_cast<const std::uint8_t*>(expected_.data());
    std::int64_t i = 0;
    while (a[i] == b[i]) ++i;
    return i;
  }

 private:
  bool pause() { return random_.chance(config_.pause_one_in); }

  // Sets the inputs of this cycle from what is to be done and from what the model shows.
  void tick() {
    Model& dut = *dut_;
    const bool fill = filled_ < jobs_.size() && filled_ < offered_ + 2 &&
                      (dut.slot_free_o >> (filled_ % 2) & 1) != 0 && !pause();
    dut.op_we_i = fill;
    dut.op_slot_i = filled_ % 2;
    dut.op_index_i = fill ? op_ : random_.below(64);
    dut.op_bus_i = fill ? kBus + jobs_[filled_].src[op_] : random_.next();
    if (!dut.job_valid_i && offered_ < filled_ && !pause()) offer(jobs_[offered_]);
    dut.done_ready_i = !pause();
    dut.clk_i = 0;
    dut.eval();
    const bool accepted = dut.job_valid_i && dut.job_ready_o;
    if (dut.done_valid_o && dut.done_ready_i) {
      ends_.push_back({dut.done_queue_o, dut.done_error_o != 0, dut.done_write_o != 0,
                       dut.done_bus_o - kBus, cycle_});
    }
    full_slots_ += dut.slot_free_o == 0;
    edge();
    if (fill && ++op_ == jobs_[filled_].src.size()) {
      op_ = 0;
      ++filled_;
    }
    if (accepted) {
      dut.job_valid_i = 0;
      begins_.push_back(cycle_ - 1);
      ++offered_;
      most_under_way_ = std::max(most_under_way_, offered_ - ends_.size());
    }
  }
  void offer(const ReduceJob& job) {
    Model& dut = *dut_;
    dut.job_valid_i = 1;
    dut.job_slot_i = offered_ % 2;
    dut.job_queue_i = offered_ % 64;
    dut.job_copy_i = job.copy;
    dut.job_type_i = job.type;
    dut.job_redop_i = job.redop;
    dut.job_out_type_i = job.out_type;
    dut.job_sources_i = static_cast<std::uint8_t>(job.src.size());
    dut.job_destinations_i = static_cast<std::uint8_t>(job.dst.size());
    dut.job_count_i = job.count;
    dut.job_scale_i = job.scale;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint64_t bus = i < job.dst.size() ? kBus + job.dst[i] : random_.next();
      dut.job_dst_i[2 * i] = static_cast<std::uint32_t>(bus);
      dut.job_dst_i[2 * i + 1] = static_cast<std::uint32_t>(bus >> 32);
    }
  }
  void edge() {
    clock([this] { slave_.sample(port_); });
    slave_.drive(port_);
    ++cycle_;
  }
  template <typename Sample>
  void clock(Sample sample) {
    dut_->clk_i = 0;
    dut_->eval();
    sample();
    dut_->clk_i = 1;
    dut_->eval();
    context_.timeInc(1);
  }

  VerilatedContext context_;
  std::vector<std::uint64_t> words_, expected_;
  sim::AxiMemory memory_;
  sim::AxiSlave slave_;
  sim::AxiPort port_{};
  const ReduceRigConfig config_;
  sim::Random random_;
  std::unique_ptr<Model> dut_;
  std::uint64_t cycle_ = 0;
  std::deque<ReduceJob> jobs_;
  std::size_t filled_ = 0;   // jobs whose sources are in their slot
  std::size_t offered_ = 0;  // jobs that were accepted
  std::size_t op_ = 0;
  std::vector<ReduceEnd> ends_;
  std::vector<std::uint64_t> begins_;
  std::size_t most_under_way_ = 0;
  std::uint64_t full_slots_ = 0;
};

// Hands out the rig's memory: operands that are disjoint, at any byte.
class Places {
 public:
  Places(std::uint64_t begin, std::uint64_t end) : next_(begin), end_(end) {}
  bool has(std::uint64_t bytes) const { return next_ + bytes + 2 * kGap <= end_; }
  // `aligned`: a multiple of 64.
  std::uint64_t take(std::uint64_t bytes, sim::Random& random, bool aligned = false) {
    std::uint64_t at = next_ + random.below(kGap);
    if (aligned) at = (at + 63) / 64 * 64;
    next_ = at + bytes;
    return at;
  }

 private:
  static constexpr std::uint64_t kGap = 192;
  std::uint64_t next_, end_;
};

// One kind of job, whose rate is measured.
struct ReduceShape {
  std::uint32_t sources;
  std::uint32_t destinations;
  std::uint64_t bytes;  // of a source
  std::uint32_t type;
  std::uint32_t out_type;
  std::uint32_t size;  // bytes of an element
  std::uint32_t out_size;
  bool aligned;
};

// Memory that is always ready and answers after 200 cycles.
inline ReduceRigConfig at_full_rate(std::uint64_t bytes) {
  ReduceRigConfig config;
  config.axi.fixed = true;
  config.axi.read_latency = config.axi.write_latency = 200;
  config.bytes = bytes;
  return config;
}

// Beats of the busier port that carry operands, per cycle, with jobs back to back: from the end of
// one job that is far enough from the first, to the end of the last. `submit(rig, job)` submits.
template <typename Rig, typename Submit>
double measure_rate(Rig& rig, const ReduceShape& shape, Submit submit) {
  const std::uint64_t count = shape.bytes / shape.size;
  const std::uint64_t out_bytes = count * shape.out_size;
  const double beats =
      static_cast<double>(std::max(shape.bytes * shape.sources, out_bytes * shape.destinations)) /
      64;
  const auto jobs_of = [&](double all, std::size_t least) {
    return std::max(least, static_cast<std::size_t>(all / beats));
  };
  const std::size_t skipped = jobs_of(2000, 1);
  const std::size_t jobs = skipped + jobs_of(4000, 2);
  // Sources lie in the first half; each destination has its place in the second.
  const std::uint64_t half = rig.size() / 2;
  const std::uint32_t step = shape.aligned ? 64 : 1;
  const auto somewhere = [&](std::uint64_t from, std::uint64_t to) {
    return from + step * (1 + rig.random().below(static_cast<std::uint32_t>((to - from) / step)));
  };
  for (std::size_t i = 0; i < jobs; ++i) {
    ReduceJob job;
    job.copy = shape.sources == 1 && shape.type == shape.out_type;
    job.type = shape.type;
    job.out_type = shape.out_type;
    job.count = job.copy ? shape.bytes : count;
    for (std::uint32_t s = 0; s < shape.sources; ++s)
      job.src.push_back(somewhere(0, half - 64 - shape.bytes));
    for (std::uint32_t d = 0; d < shape.destinations; ++d) {
      const std::uint64_t place = half + d * (half / shape.destinations / 64 * 64);
      job.dst.push_back(somewhere(place, place + 4096));
    }
    submit(rig, job);
  }
  if (!rig.run(static_cast<std::uint64_t>(beats) * jobs * 4 + 10000)) return 0;
  return beats * static_cast<double>(jobs - skipped) /
         static_cast<double>(rig.ends()[jobs - 1].cycle - rig.ends()[skipped - 1].cycle);
}

}  // namespace penstock::rtl
#endif
