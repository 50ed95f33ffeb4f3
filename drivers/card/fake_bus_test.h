// A card in a few lines, that does what a test tells it to: what the driver has to stand.
#ifndef PENSTOCK_DRIVERS_CARD_FAKE_BUS_TEST_H_
#define PENSTOCK_DRIVERS_CARD_FAKE_BUS_TEST_H_

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "penstock/descriptor/descriptor.h"
#include "penstock/descriptor/register_map.h"
#include "penstock/drivers/card/bus.h"

namespace penstock::card {

// Outlives the bus, so that a test sees what was left.
struct FakeCard {
  struct Ring {
    std::uint64_t at = 0, completions = 0;
    std::uint32_t depth = 0, tail = 0, head = 0, enabled_times = 0;
    bool enabled = false, cancel = false, stopped = false, waiting = false;
  };

  // What a test changes.
  std::map<std::uint32_t, std::uint32_t> registers = {
      {PENSTOCK_REGISTER_ID, PENSTOCK_REGISTER_ID_RESET},
      {PENSTOCK_REGISTER_VERSION, PENSTOCK_REGISTER_VERSION_RESET},
      {PENSTOCK_REGISTER_CAP_OPCODES, 0x13f},
      {PENSTOCK_REGISTER_CAP_LIMITS, 0x03401004},  // 4 queues of 16 windows
      {PENSTOCK_REGISTER_CAP_MAX_BYTES, 32},
      {PENSTOCK_REGISTER_CAP_ROWS, 4096},
      {PENSTOCK_REGISTER_CAP_TABLE, 0x00400808},
      {PENSTOCK_REGISTER_CAP_LANES, 8},
      {PENSTOCK_REGISTER_CAP_FILTERS, 0x1e},
      {PENSTOCK_REGISTER_CAP_SCORES, 0x0f},
      {PENSTOCK_REGISTER_CAP_NORMALISE, 0x0008030f},
      {PENSTOCK_REGISTER_CAP_TYPE_INT8 + 4 * PENSTOCK_F32, 0x0ec0003f},
  };
  std::function<penstock_completion(const penstock_descriptor&)> answer =
      [](const penstock_descriptor& d) {
        return penstock_completion{d.cookie, 0, 0, 0, 0};
      };
  bool dead = false;             // nothing answers
  bool silent = false;           // descriptors are taken, and never answered
  bool resets = true;            // a reset ends
  bool enables = true;           // a queue that is enabled is
  std::uint32_t per_idle = 100;  // descriptors answered in one idle()
  bool interrupts = false;       // idle() waits for one
  std::uint64_t staging = 0;     // the card works on copies, in so many bytes of its own
  bool moves = true;             // they can be moved

  // What a test looks at.
  std::map<std::uint32_t, Ring> queues;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> doorbells;  // queue, value
  std::set<std::uint64_t> attached;
  std::vector<std::byte> own;                             // the card's own memory
  std::vector<std::pair<std::uint64_t, bool>> movements;  // bytes, and whether to the card
  std::uint32_t rings = 0, resets_seen = 0, begun_while_cancelled = 0;

  std::uint32_t read(std::uint32_t offset) {
    if (dead) return kNoAnswer;
    if (offset == PENSTOCK_REGISTER_STATUS) {
      const std::uint32_t error = registers[PENSTOCK_REGISTER_STATUS] & 4;
      return (resets || resets_seen == 0 ? 0u : 1u) | error;
    }
    if (offset < PENSTOCK_REGISTER_QUEUE || offset >= PENSTOCK_REGISTER_WINDOW ||
        offset % PENSTOCK_REGISTER_QUEUE_STRIDE != PENSTOCK_REGISTER_QUEUE_STATE)
      return registers[offset];
    const Ring& q = queues[(offset - PENSTOCK_REGISTER_QUEUE) / PENSTOCK_REGISTER_QUEUE_STRIDE];
    const bool idle = q.stopped || q.head == q.tail;
    return (q.enabled ? 1u : 0u) | (idle ? 2u : 0u) | (q.stopped ? 4u : 0u) | (q.waiting ? 8u : 0u);
  }
  void write(std::uint32_t offset, std::uint32_t value) {
    if (dead) return;
    registers[offset] = value;
    if (offset == PENSTOCK_REGISTER_CONTROL && (value & 2) != 0) {
      ++resets_seen;
      for (auto& [number, q] : queues) q = Ring{0, 0, 0, 0, 0, q.enabled_times};
    }
    if (offset == PENSTOCK_REGISTER_IRQ_ERROR) registers[PENSTOCK_REGISTER_STATUS] &= ~4u;
    if (offset < PENSTOCK_REGISTER_QUEUE || offset >= PENSTOCK_REGISTER_WINDOW) return;
    const std::uint32_t number =
        (offset - PENSTOCK_REGISTER_QUEUE) / PENSTOCK_REGISTER_QUEUE_STRIDE;
    const std::uint32_t base =
        offset / PENSTOCK_REGISTER_QUEUE_STRIDE * PENSTOCK_REGISTER_QUEUE_STRIDE;
    Ring& q = queues[number];
    if (offset - base == PENSTOCK_REGISTER_QUEUE_CONTROL) control(base, value, &q);
    if (offset - base == PENSTOCK_REGISTER_QUEUE_TAIL) {
      doorbells.emplace_back(number, value);
      q.tail = value;
    }
  }
  std::uint64_t wide(std::uint32_t at) {
    return registers[at] | std::uint64_t{registers[at + 4]} << 32;
  }

  void control(std::uint32_t base, std::uint32_t value, Ring* q) {
    if ((value & 1) != 0 && !q->enabled) {
      *q = Ring{wide(base + PENSTOCK_REGISTER_QUEUE_RING_LO),
                wide(base + PENSTOCK_REGISTER_QUEUE_COMPLETIONS_LO),
                1u << registers[base + PENSTOCK_REGISTER_QUEUE_CONFIG],
                0,
                0,
                q->enabled_times + 1};
    }
    q->enabled = enables && (value & 1) != 0;
    q->cancel = (value & 2) != 0;
  }

  void work() {
    for (auto& [number, q] : queues) {
      for (std::uint32_t n = 0; n < per_idle && q.enabled && !q.stopped && q.head != q.tail; ++n) {
        if (silent && !q.cancel) break;
        penstock_descriptor d;
        std::memcpy(&d, reinterpret_cast<void*>(q.at + (q.head % q.depth) * 128), sizeof(d));
        penstock_completion c =
            q.cancel ? penstock_completion{d.cookie, PENSTOCK_CANCELLED, 0, 0, 0} : answer(d);
        if (q.stopped) break;  // answer() may say so
        c.sequence = ++q.head;
        std::memcpy(reinterpret_cast<void*>(q.completions + ((q.head - 1) % q.depth) * 32), &c,
                    sizeof(c));
      }
    }
  }
};

// Bus addresses are those of this process.
class FakeBus final : public Bus {
 public:
  explicit FakeBus(std::shared_ptr<FakeCard> card) : card_(std::move(card)) {}
  std::string description() const override { return "a card in a few lines"; }
  std::uint32_t read(std::uint32_t offset) override { return card_->read(offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { card_->write(offset, value); }
  Result<std::uint64_t> attach(std::byte* memory, std::uint64_t) override {
    card_->attached.insert(reinterpret_cast<std::uint64_t>(memory));
    return reinterpret_cast<std::uint64_t>(memory);
  }
  void detach(std::uint64_t bus) override { card_->attached.erase(bus); }
  Result<BusMemory> allocate(std::uint64_t bytes) override {
    ++card_->rings;
    const std::uint64_t rounded = (bytes + 4095) / 4096 * 4096;
    auto* data = static_cast<std::byte*>(std::aligned_alloc(4096, rounded));
    std::memset(data, 0, rounded);
    return BusMemory{data, reinterpret_cast<std::uint64_t>(data), rounded};
  }
  void release(const BusMemory& memory) override {
    --card_->rings;
    std::free(memory.data);
  }
  bool stages() const override { return card_->staging != 0; }
  Result<BusMemory> allocate_staging() override {
    card_->own.assign(card_->staging, std::byte{0xee});
    PENSTOCK_ASSIGN(BusMemory image, allocate(card_->staging));
    image.bytes = card_->staging;
    return image;
  }
  Status to_card(const BusMemory& memory, std::uint64_t at, std::uint64_t bytes) override {
    return move(memory.data + at, at, bytes, true);
  }
  Status from_card(const BusMemory& memory, std::uint64_t at, std::uint64_t bytes) override {
    return move(memory.data + at, at, bytes, false);
  }
  bool behind_caches() const override { return true; }
  bool interrupts() const override { return card_->interrupts; }
  std::uint32_t clock_khz() const override { return 1234; }
  void idle() override {
    if (!card_->dead) card_->work();
  }

 private:
  Status move(std::byte* image, std::uint64_t at, std::uint64_t bytes, bool to_card) {
    if (!card_->moves) return error(Code::io_error, "the DMA engine is broken");
    card_->movements.emplace_back(bytes, to_card);
    if (to_card)
      std::memcpy(card_->own.data() + at, image, bytes);
    else
      std::memcpy(image, card_->own.data() + at, bytes);
    return {};
  }

  const std::shared_ptr<FakeCard> card_;
};

}  // namespace penstock::card
#endif
