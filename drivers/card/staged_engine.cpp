#include "penstock/drivers/card/staged_engine.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/platform.h"
#include "penstock/drivers/card/card_queue.h"
#include "penstock/engine/device_engine.h"

namespace penstock::card {
namespace {

constexpr std::uint64_t kAlignment = PENSTOCK_CACHE_LINE;
constexpr std::uint32_t kInnerDepth = 2;
constexpr std::size_t kMostOperations = 64;
constexpr int kMostTries = 3;
// Where the staging memory is for the card, whose addresses are of a pool.
constexpr penstock_address kBase = PENSTOCK_CACHE_LINE;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Bytes that go to the card, come back from it, or both.
struct Part {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t at = 0;    // in the staging memory
  std::uint64_t skip = 0;  // so many of them do not come back
};

struct Operation {
  std::uint64_t number = 0;
  penstock_descriptor descriptor{};
  // COPY and REDUCE: by elements.
  std::vector<const std::byte*> src;
  std::vector<std::byte*> dst;
  std::uint64_t src_element = 1, dst_element = 1;
  std::uint64_t count = 0, done = 0;
  // SELECT: all of it at once.
  std::optional<SelectArguments> select;
  // Of the step that is with the card.
  std::uint64_t step = 0;
  std::vector<Part> results;
  int tries = 0;
};

// The bus's staging memory, filled from its start.
class Layout {
 public:
  explicit Layout(const BusMemory& memory) : memory_(memory) {}
  bool place(Part* part) {
    part->at = used_;
    if (part->bytes > memory_.bytes || used_ > memory_.bytes - part->bytes) return false;
    if (part->from != nullptr) std::memcpy(memory_.data + used_, part->from, part->bytes);
    used_ += aligned(part->bytes);
    return true;
  }
  std::uint64_t used() const { return std::min(used_, memory_.bytes); }
  static penstock_address address(const Part& part) { return kBase + part.at; }

 private:
  const BusMemory& memory_;
  std::uint64_t used_ = 0;
};

class CardStream final : public DeviceStream {
 public:
  static Result<std::unique_ptr<DeviceStream>> open(std::shared_ptr<Card> card,
                                                    const QueueConfig& outer) {
    PENSTOCK_ASSIGN(const BusMemory memory, card->bus().allocate_staging());
    std::unique_ptr<CardStream> stream(new CardStream(std::move(card), memory));
    QueueConfig config;
    config.depth = kInnerDepth;
    config.default_timeout_ms = outer.default_timeout_ms;
    PENSTOCK_ASSIGN(stream->queue_, Queue::create(nullptr, config));
    const std::vector<CardWindow> windows = {{kBase, memory.bytes, memory.bus, true, true}};
    PENSTOCK_ASSIGN(stream->side_, CardQueue::open(stream->card_, *stream->queue_, windows));
    return std::unique_ptr<DeviceStream>(std::move(stream));
  }
  ~CardStream() override {
    side_.reset();
    card_->bus().release(memory_);
  }

  Status copy(void* const* dst, std::uint32_t n_dst, const void* src,
              std::uint64_t bytes) override {
    Operation operation;
    operation.descriptor.opcode = PENSTOCK_OP_COPY;
    operation.src = {static_cast<const std::byte*>(src)};
    for (std::uint32_t i = 0; i < n_dst; ++i)
      operation.dst.push_back(static_cast<std::byte*>(dst[i]));
    operation.count = bytes;
    return start(std::move(operation));
  }
  Status reduce(const ReduceArguments& a) override {
    Operation operation;
    penstock_descriptor& d = operation.descriptor;
    d.opcode = PENSTOCK_OP_REDUCE;
    d.type = static_cast<std::uint8_t>(a.type);
    d.redop = static_cast<std::uint8_t>(a.redop);
    d.out_type = static_cast<std::uint8_t>(a.result_type());
    d.scale = a.scale;
    for (std::uint32_t i = 0; i < a.n_src; ++i)
      operation.src.push_back(static_cast<const std::byte*>(a.src[i]));
    for (std::uint32_t i = 0; i < a.n_dst; ++i)
      operation.dst.push_back(static_cast<std::byte*>(a.dst[i]));
    operation.src_element = penstock_type_size(a.type);
    operation.dst_element = penstock_type_size(a.result_type());
    operation.count = a.count;
    return start(std::move(operation));
  }
  Status select(const SelectArguments& a) override {
    const std::uint64_t needed = aligned(a.view.header->bytes) + aligned(sizeof(penstock_program)) +
                                 aligned(a.n * sizeof(penstock_task)) +
                                 a.n * sizeof(penstock_result);
    if (needed > memory_.bytes)
      return error(Code::no_space,
                   "a SELECT needs {} bytes of the card's staging memory, and it has {}", needed,
                   memory_.bytes);
    Operation operation;
    operation.descriptor.opcode = PENSTOCK_OP_SELECT;
    operation.descriptor.flags = a.commit ? std::uint32_t{PENSTOCK_FLAG_COMMIT} : 0;
    operation.select = a;
    operation.count = a.n;
    return start(std::move(operation));
  }
  Result<std::uint64_t> mark() override {
    if (!lost_.ok()) return lost_;
    return started_;
  }
  Result<bool> reached(std::uint64_t mark) override {
    pump();
    if (!lost_.ok()) return lost_;
    return operations_.empty() || operations_.front().number > mark;
  }

 private:
  CardStream(std::shared_ptr<Card> card, const BusMemory& memory)
      : card_(std::move(card)), memory_(memory) {}

  Status start(Operation operation) {
    if (!lost_.ok()) return lost_;
    if (operations_.size() >= kMostOperations)
      return error(Code::busy, "{} operations wait for the card", operations_.size());
    operation.number = ++started_;
    operations_.push_back(std::move(operation));
    pump();
    return {};
  }

  // Begins, ends and begins again what can be, without waiting.
  void pump() {
    while (lost_.ok() && !operations_.empty()) {
      Operation& front = operations_.front();
      if (!with_card_) {
        lost_ = begin(front);
        with_card_ = lost_.ok();
        if (!with_card_) return;
      }
      side_->advance(*queue_);
      penstock_completion completion;
      if (!queue_->poll(&completion)) return;
      with_card_ = false;
      if (front.select && refused(*front.select, completion)) {
        operations_.pop_front();
        continue;
      }
      if (completion.status != PENSTOCK_OK) {
        if (!card_->lost() && ++front.tries < kMostTries) continue;
        lost_ = error(Code::io_error, "the card ends a staged {} with {}, {}, {:#x}",
                      penstock_opcode_name(front.descriptor.opcode),
                      penstock_status_name(completion.status),
                      penstock_field_name(completion.field), completion.detail);
        return;
      }
      lost_ = end(front);
      if (lost_.ok() && front.done == front.count) operations_.pop_front();
    }
  }

  // What a program needs of the card can be more than its capabilities tell. A field that names an
  // address would name one of the staging memory.
  static bool refused(const SelectArguments& a, const penstock_completion& completion) {
    const bool index =
        completion.field == PENSTOCK_FIELD_PROGRAM || completion.field == PENSTOCK_FIELD_TASK;
    if (completion.status != PENSTOCK_UNSUPPORTED || !index) return false;
    *a.status = completion.status;
    *a.field = completion.field;
    *a.detail = completion.detail;
    return true;
  }

  // Elements of the next step: all that are left, or as many as there is place for.
  std::uint64_t step_of(const Operation& o) const {
    const std::uint64_t operands = o.src.size() + o.dst.size();
    const std::uint64_t place = memory_.bytes - operands * kAlignment - o.src.size() * 8;
    const std::uint64_t most =
        place / (o.src.size() * o.src_element + o.dst.size() * o.dst_element);
    const std::uint64_t left = o.count - o.done;
    // Pieces of whole lines, so that all but the last are moved in whole beats.
    return left <= most ? left : std::max<std::uint64_t>(most / kAlignment * kAlignment, 1);
  }

  Status begin(Operation& o) {
    Layout layout(memory_);
    penstock_descriptor d = o.descriptor;
    d.version = PENSTOCK_DESCRIPTOR_VERSION;
    d.cookie = o.number;
    o.results.clear();
    const bool fits = o.select ? place_select(layout, o, &d) : place_elements(layout, o, &d);
    if (!fits) return error(Code::internal, "an operation does not fit into the staging memory");
    PENSTOCK_TRY(card_->bus().to_card(memory_, 0, sent_));
    const bool submitted = queue_->submit(d);
    PENSTOCK_CHECK(submitted, "the queue behind a card's stream is full");
    return {};
  }

  bool place_elements(Layout& layout, Operation& o, penstock_descriptor* d) {
    o.step = step_of(o);
    d->count = o.step;
    d->n_src = static_cast<std::uint8_t>(o.src.size());
    d->n_dst = static_cast<std::uint8_t>(o.dst.size());
    std::vector<penstock_address> list;
    for (const std::byte* src : o.src) {
      Part part{src + o.done * o.src_element, nullptr, o.step * o.src_element};
      if (!layout.place(&part)) return false;
      list.push_back(Layout::address(part));
    }
    if (list.size() > PENSTOCK_INLINE_SOURCES) {
      Part part{reinterpret_cast<const std::byte*>(list.data()), nullptr,
                list.size() * sizeof(list[0])};
      if (!layout.place(&part)) return false;
      d->flags |= PENSTOCK_FLAG_SRC_LIST;
      d->src[0] = Layout::address(part);
    } else {
      std::copy(list.begin(), list.end(), d->src);
    }
    sent_ = layout.used();
    for (std::size_t i = 0; i < o.dst.size(); ++i) {
      Part part{nullptr, o.dst[i] + o.done * o.dst_element, o.step * o.dst_element};
      if (!layout.place(&part)) return false;
      d->dst[i] = Layout::address(part);
      o.results.push_back(part);
    }
    return true;
  }

  bool place_select(Layout& layout, Operation& o, penstock_descriptor* d) {
    const SelectArguments& a = *o.select;
    o.step = o.count;
    d->count = a.n;
    d->n_src = 3;
    d->n_dst = 1;
    Part table{a.table, a.table, a.view.header->bytes};
    Part program{reinterpret_cast<const std::byte*>(a.program), nullptr, sizeof(penstock_program)};
    Part tasks{reinterpret_cast<const std::byte*>(a.tasks), nullptr, a.n * sizeof(penstock_task)};
    Part results{nullptr, a.results, a.n * sizeof(penstock_result)};
    if (!layout.place(&table) || !layout.place(&program) || !layout.place(&tasks)) return false;
    // The header as the engine checked it.
    std::memcpy(memory_.data + table.at, a.view.header, sizeof(penstock_node_table));
    sent_ = layout.used();
    if (!layout.place(&results)) return false;
    d->src[0] = Layout::address(table);
    d->src[1] = Layout::address(program);
    d->src[2] = Layout::address(tasks);
    d->dst[0] = Layout::address(results);
    table.skip = sizeof(penstock_node_table);  // the engine's to write
    if (a.commit) o.results.push_back(table);
    o.results.push_back(results);
    return true;
  }

  Status end(Operation& o) {
    for (const Part& part : o.results) {
      const std::uint64_t at = part.at + part.skip, bytes = part.bytes - part.skip;
      PENSTOCK_TRY(card_->bus().from_card(memory_, at, bytes));
      std::memcpy(part.to + part.skip, memory_.data + at, bytes);
    }
    o.done += o.step;
    o.tries = 0;
    return {};
  }

  const std::shared_ptr<Card> card_;
  const BusMemory memory_;
  std::unique_ptr<Queue> queue_;  // of descriptors in terms of the staging memory
  std::unique_ptr<CardQueue> side_;
  std::deque<Operation> operations_;
  std::uint64_t started_ = 0;
  std::uint64_t sent_ = 0;  // bytes that a step sends
  bool with_card_ = false;  // the first operation's step
  Status lost_;
};

class StagedCard final : public Device {
 public:
  explicit StagedCard(std::shared_ptr<Card> card) : card_(std::move(card)) {}
  Result<std::unique_ptr<DeviceStream>> open(Queue& queue) override {
    return CardStream::open(card_, queue.config());
  }

 private:
  const std::shared_ptr<Card> card_;
};

}  // namespace

std::shared_ptr<Engine> make_staged_engine(std::shared_ptr<Card> card) {
  Capabilities can = card->identity().capabilities;
  const auto bit = [](std::uint32_t opcode) { return 1u << opcode; };
  can.opcodes &= bit(PENSTOCK_OP_COPY) | bit(PENSTOCK_OP_REDUCE) | bit(PENSTOCK_OP_SELECT);
  can.opcodes |= bit(PENSTOCK_OP_NOP) | bit(PENSTOCK_OP_SIGNAL) | bit(PENSTOCK_OP_WAIT) |
                 bit(PENSTOCK_OP_BARRIER);
  can.description += ", on copies";
  can.host_memory = true;  // the host copies it, too
  return make_device_engine(std::move(can), std::make_shared<StagedCard>(std::move(card)));
}

}  // namespace penstock::card
