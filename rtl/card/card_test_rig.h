// The whole card over simulated memory, with a shadow of that memory: what descriptors do to it is
// computed by the host's scalar kernels, and every byte is compared.
#ifndef PENSTOCK_RTL_CARD_CARD_TEST_RIG_H_
#define PENSTOCK_RTL_CARD_CARD_TEST_RIG_H_

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/descriptor/register_map.h"
#include "penstock/engine/host_engine.h"
#include "penstock/sim/incoherent/random.h"
#include "penstock/sim/verilated/verilated_card.h"

namespace penstock::rtl {

inline constexpr std::uint32_t queue_register(std::uint32_t queue, std::uint32_t offset) {
  return PENSTOCK_REGISTER_QUEUE + queue * PENSTOCK_REGISTER_QUEUE_STRIDE + offset;
}

class CardRig {
 public:
  // Operands lie at bus kBus, penstock addresses kPool; rings at kRings.
  static constexpr std::uint64_t kBus = 0x0045'0000'0000'0000;
  static constexpr std::uint64_t kPool = 0x0200'0000'0004'0000;
  static constexpr std::uint64_t kRings = 0x0001'0000'0000'0000;
  static constexpr std::uint64_t kBytes = 1 << 20;
  static constexpr std::uint32_t kRingBytes = 0x2000;  // of a queue: 32 records, 32 completions

  static sim::VerilatedCardOptions options_of(const sim::AxiConfig& axi) {
    sim::VerilatedCardOptions options;
    options.memory = axi;
    return options;
  }

  explicit CardRig(const sim::AxiConfig& axi)
      : random(axi.seed * 31 + 7),
        card(options_of(axi)),
        words_(kBytes / 8),
        rings_(64 * kRingBytes / 8),
        kernels_(scalar_kernels()) {
    for (std::uint64_t& word : words_) word = random.next();
    shadow_ = words_;
    card.memory().attach(kBus, words_.data(), kBytes);
    card.memory().attach(kRings, rings_.data(), rings_.size() * 8);
    write(PENSTOCK_REGISTER_CONTROL, 1);
  }

  std::byte* at(std::uint64_t address) {
    return reinterpret_cast<std::byte*>(words_.data()) + (address - kPool);
  }
  std::byte* shadow_at(std::uint64_t address) {
    return reinterpret_cast<std::byte*>(shadow_.data()) + (address - kPool);
  }
  std::byte* ring_at(std::uint64_t bus) {
    return reinterpret_cast<std::byte*>(rings_.data()) + (bus - kRings);
  }
  static std::uint64_t bus_of(std::uint64_t address) { return kBus + (address - kPool); }
  // Sets a word of memory and of what is expected.
  void put(std::uint64_t address, std::uint64_t value) {
    std::memcpy(at(address), &value, sizeof value);
    std::memcpy(shadow_at(address), &value, sizeof value);
  }
  // The first place where memory is not as expected, or -1.
  std::int64_t difference() const {
    if (words_ == shadow_) return -1;
    const auto* a = reinterpret_cast<const std::uint8_t*>(words_.data());
    const auto* b = reinterpret_cast<const std::uint8_t*>(shadow_.data());
    std::int64_t i = 0;
    while (a[i] == b[i]) ++i;
    return i;
  }
  void forget_differences() { shadow_ = words_; }

  void write(std::uint32_t offset, std::uint32_t value) {
    if (!card.write(offset, value)) throw std::runtime_error("a register refuses a write");
  }
  void write64(std::uint32_t offset, std::uint64_t value) {
    write(offset, static_cast<std::uint32_t>(value));
    write(offset + 4, static_cast<std::uint32_t>(value >> 32));
  }
  std::uint32_t read(std::uint32_t offset) {
    std::uint32_t value = 0;
    if (!card.read(offset, &value)) throw std::runtime_error("a register cannot be read");
    return value;
  }
  std::uint64_t read64(std::uint32_t offset) {
    const std::uint64_t low = read(offset);
    return low | static_cast<std::uint64_t>(read(offset + 4)) << 32;
  }

  // What a COPY or REDUCE does to the shadow.
  void perform(const penstock_descriptor& d, const std::vector<std::uint64_t>& sources) {
    std::vector<const void*> src;
    for (const std::uint64_t address : sources) src.push_back(shadow_at(address));
    std::vector<void*> dst;
    for (std::uint32_t i = 0; i < d.n_dst; ++i) dst.push_back(shadow_at(d.dst[i]));
    if (d.count == 0) return;
    if (d.opcode == PENSTOCK_OP_COPY)
      return kernels_->copy(dst.data(), d.n_dst, src[0], d.count, false);
    ReduceArguments a{d.type,  d.redop,    static_cast<std::uint32_t>(src.size()),
                      d.n_dst, src.data(), dst.data(),
                      d.count, d.scale};
    a.out_type = d.out_type;
    kernels_->reduce(a);
  }

  sim::Random random;
  sim::VerilatedCard card;

 private:
  std::vector<std::uint64_t> words_, shadow_, rings_;
  const std::unique_ptr<const Kernels> kernels_;
};

class CardQueue {
 public:
  CardQueue(CardRig& rig, std::uint32_t queue, std::uint32_t depth_log2 = 4)
      : rig_(rig), queue_(queue), depth_(1u << depth_log2) {
    ring_ = CardRig::kRings + queue * CardRig::kRingBytes + 64;
    completions_ = ring_ + 0x1000;
    set_up();
  }
  void set_up() {
    rig_.write64(reg(PENSTOCK_REGISTER_QUEUE_RING_LO), ring_);
    rig_.write64(reg(PENSTOCK_REGISTER_QUEUE_COMPLETIONS_LO), completions_);
    std::uint32_t log2 = 0;
    while (1u << log2 != depth_) ++log2;
    rig_.write(reg(PENSTOCK_REGISTER_QUEUE_CONFIG), log2);
    rig_.write(reg(PENSTOCK_REGISTER_QUEUE_TIMEOUT_MS), 1000);
    const std::uint32_t window =
        PENSTOCK_REGISTER_WINDOW + queue_ * PENSTOCK_REGISTER_WINDOW_STRIDE;
    rig_.write64(window + PENSTOCK_REGISTER_WINDOW_BASE_LO, CardRig::kPool);
    rig_.write64(window + PENSTOCK_REGISTER_WINDOW_BYTES_LO, CardRig::kBytes);
    rig_.write64(window + PENSTOCK_REGISTER_WINDOW_BUS_LO, CardRig::kBus);
    rig_.write(window + 0x18, 3);
    rig_.write(reg(PENSTOCK_REGISTER_QUEUE_WINDOWS), 1);
    std::memset(rig_.ring_at(completions_), 0xee, depth_ * 32ull);
    submitted_ = polled_ = 0;
    expected_.clear();
    rig_.write(reg(PENSTOCK_REGISTER_QUEUE_CONTROL), 1);
  }

  struct Expected {
    std::uint32_t status = 0, field = 0;
    std::uint64_t detail = 0;
    bool any_detail = false;
  };
  bool full() const { return submitted_ - polled_ == depth_; }
  void submit(penstock_descriptor d, const Expected& expected) {
    d.cookie = (std::uint64_t{queue_} << 32 | submitted_) * 0x9e3779b97f4a7c15u;
    std::memcpy(rig_.ring_at(ring_ + submitted_ % depth_ * 128ull), &d, sizeof d);
    expected_.push_back(expected);
    ++submitted_;
  }
  void doorbell() { rig_.write(reg(PENSTOCK_REGISTER_QUEUE_TAIL), submitted_); }
  // Takes what completed; what was wrong, or "".
  std::string poll() {
    for (; polled_ < submitted_; ++polled_) {
      penstock_completion c;
      std::byte* place = rig_.ring_at(completions_ + polled_ % depth_ * 32ull);
      std::memcpy(&c, place, sizeof c);
      if (c.sequence != polled_ + 1) return "";
      const Expected& e = expected_[polled_];
      const std::uint64_t cookie = (std::uint64_t{queue_} << 32 | polled_) * 0x9e3779b97f4a7c15u;
      if (c.status != e.status || c.field != e.field || c.cookie != cookie ||
          (!e.any_detail && c.detail != e.detail)) {
        return "queue " + std::to_string(queue_) + ", completion " + std::to_string(polled_) +
               ": status " + std::to_string(c.status) + " field " + std::to_string(c.field) +
               " detail " + std::to_string(c.detail) + ", expected " + std::to_string(e.status) +
               " " + std::to_string(e.field) + " " + std::to_string(e.detail);
      }
      std::memset(place, 0xee, sizeof c);
    }
    return "";
  }
  std::uint32_t reg(std::uint32_t offset) const { return queue_register(queue_, offset); }
  std::uint64_t record_bus(std::uint32_t n) const { return ring_ + n % depth_ * 128ull; }
  std::uint32_t submitted() const { return submitted_; }
  std::uint32_t polled() const { return polled_; }
  std::uint32_t queue() const { return queue_; }

 private:
  CardRig& rig_;
  const std::uint32_t queue_, depth_;
  std::uint64_t ring_ = 0, completions_ = 0;
  std::uint32_t submitted_ = 0, polled_ = 0;
  std::vector<Expected> expected_;
};

// Until all have polled everything; what was wrong, or "". The watchdog is `limit` cycles.
template <typename Queues>
std::string drain(CardRig& rig, Queues& queues, std::uint64_t limit) {
  for (const std::uint64_t end = rig.card.cycle() + limit; rig.card.cycle() < end;) {
    bool done = true;
    for (CardQueue& queue : queues) {
      const std::string wrong = queue.poll();
      if (!wrong.empty()) return wrong;
      done = done && queue.polled() == queue.submitted();
    }
    if (done) return "";
    rig.card.run(200, true);
  }
  std::string text = "hangs:";
  for (CardQueue& queue : queues)
    if (queue.polled() != queue.submitted())
      text += " queue " + std::to_string(queue.queue()) + " at " + std::to_string(queue.polled()) +
              " of " + std::to_string(queue.submitted());
  return text;
}

}  // namespace penstock::rtl
#endif
