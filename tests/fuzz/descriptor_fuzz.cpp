// COPY, REDUCE and OUTER_STEP as anything may submit them: the check and both host engines have to
// give one answer, what is refused touches no memory, and what is executed leaves the same bits.
//
// Input: opcode, type, redop, out_type, n_src, n_dst, block and flags (a byte each, near their
// ranges), count (2 bytes), scale (8 bytes), then 2 bytes for each address, which is brought into
// an arena, and the arena's content, repeated until it is full. What is missing is zero.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "penstock/engine/engine.h"
#include "penstock/queue/queue.h"

namespace penstock {
namespace {

constexpr std::uint64_t kArenaBytes = 16384;
constexpr std::uint64_t kMaxStart = 8192;
constexpr std::uint64_t kMaxElements = 600;  // of 8 bytes: they end before the arena does
constexpr std::uint64_t kListOffset = kArenaBytes - PENSTOCK_MAX_SOURCES * 8;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  template <typename T>
  T take() {
    T value = {};
    const std::size_t length = std::min(sizeof value, size_);
    if (length > 0) std::memcpy(&value, data_, length);
    data_ += length;
    size_ -= length;
    return value;
  }
  // 0 .. most, and now and then more.
  std::uint8_t near(unsigned most) {
    const unsigned byte = take<std::uint8_t>();
    return static_cast<std::uint8_t>(byte > 250 ? byte : byte % (most + 1));
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

struct Request {
  penstock_descriptor d{};
  std::vector<std::uint64_t> src, dst;  // offsets in the arena
  std::uint64_t weights = 0;
  std::vector<std::uint8_t> content;
};

Request read_request(Input input) {
  Request r;
  penstock_descriptor& d = r.d;
  constexpr std::uint8_t kOpcodes[] = {PENSTOCK_OP_REDUCE, PENSTOCK_OP_REDUCE, PENSTOCK_OP_COPY,
                                       PENSTOCK_OP_OUTER_STEP};
  constexpr std::uint8_t kBlocks[] = {0, 32, 64, 33};
  d.version = PENSTOCK_DESCRIPTOR_VERSION;
  d.opcode = kOpcodes[input.take<std::uint8_t>() % 4];
  d.type = input.near(PENSTOCK_TYPE_COUNT - 1);
  d.redop = input.near(PENSTOCK_REDOP_COUNT - 1);
  d.out_type = input.near(PENSTOCK_TYPE_COUNT - 1);
  d.n_src = input.near(12);
  d.n_dst = input.near(3);
  d.block = kBlocks[input.take<std::uint8_t>() % 4];
  d.flags = input.near(PENSTOCK_FLAG_ALL);
  if (d.opcode == PENSTOCK_OP_COPY) d.type = d.redop = d.out_type = d.block = 0;
  d.count = input.take<std::uint16_t>() % kMaxElements;
  d.scale = input.take<std::uint64_t>();
  // More addresses than the record has room for are refused before they are looked at.
  const auto address = [&] { return std::uint64_t{input.take<std::uint16_t>()} % kMaxStart; };
  for (unsigned s = 0; s < std::min<unsigned>(d.n_src, PENSTOCK_MAX_SOURCES); ++s)
    r.src.push_back(address());
  for (unsigned i = 0; i < std::min<unsigned>(d.n_dst, PENSTOCK_MAX_DESTINATIONS); ++i)
    r.dst.push_back(address());
  r.weights = d.scale % kMaxStart;
  for (int i = 0; i < 256; ++i) r.content.push_back(input.take<std::uint8_t>());
  return r;
}

struct Run {
  std::vector<std::uint64_t> memory;  // in words, so that lists and weights are aligned
  penstock_completion completion{};
};

Run execute(const Request& r, Engine& engine) {
  Run run;
  run.memory.resize(kArenaBytes / 8);
  auto* bytes = reinterpret_cast<std::uint8_t*>(run.memory.data());
  for (std::uint64_t i = 0; i < kArenaBytes; ++i) bytes[i] = r.content[i * 7 % r.content.size()];
  penstock_descriptor d = r.d;
  for (std::size_t i = 0; i < r.dst.size(); ++i) d.dst[i] = penstock_address_host(bytes + r.dst[i]);
  if ((d.flags & PENSTOCK_FLAG_SRC_LIST) != 0) {
    auto* list = run.memory.data() + kListOffset / 8;
    for (std::size_t s = 0; s < r.src.size(); ++s)
      list[s] = penstock_address_host(bytes + r.src[s]);
    d.src[0] = penstock_address_host(list);
  } else {
    for (std::size_t s = 0; s < std::min<std::size_t>(r.src.size(), PENSTOCK_INLINE_SOURCES); ++s)
      d.src[s] = penstock_address_host(bytes + r.src[s]);
  }
  if ((d.flags & PENSTOCK_FLAG_WEIGHTS) != 0) d.scale = penstock_address_host(bytes + r.weights);
  const std::vector<std::uint64_t> before = run.memory;

  QueueConfig config;
  config.depth = 2;
  const std::unique_ptr<Queue> queue = Queue::create(nullptr, config).value();
  if (!queue->submit(d)) std::abort();
  engine.advance(*queue);
  if (!queue->poll(&run.completion)) std::abort();
  if (run.completion.status != PENSTOCK_OK && run.memory != before) {
    std::fprintf(stderr, "a refused descriptor touched memory\n");
    std::abort();
  }
  // Addresses differ from run to run.
  if (run.completion.field >= PENSTOCK_FIELD_SCALE) run.completion.detail = 0;
  std::fill_n(run.memory.begin() + kListOffset / 8, PENSTOCK_MAX_SOURCES, 0);
  return run;
}

void run_one(const Request& request) {
  static const std::shared_ptr<Engine> scalar = make_engine("scalar").value();
  static const std::shared_ptr<Engine> simd = make_engine("simd").value();
  const Run expected = execute(request, *scalar);
  const Run actual = execute(request, *simd);
  const penstock_completion &a = expected.completion, &b = actual.completion;
  if (a.status != b.status || a.field != b.field || a.detail != b.detail ||
      expected.memory != actual.memory) {
    std::fprintf(stderr, "simd differs from scalar: opcode %u, type %u, redop %u\n",
                 request.d.opcode, request.d.type, request.d.redop);
    std::abort();
  }
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock::run_one(penstock::read_request(penstock::Input(data, size)));
  return 0;
}
