#include <algorithm>
#include <cstring>

#include "penstock/engine/accept.h"
#include "penstock/engine/conformance_reference.h"
#include "penstock/engine/conformance_rig.h"

namespace penstock::conformance {
namespace {

constexpr std::uint64_t kGuard = 64;
// Of one operand with its guards: the longest length of f64, and up to 63 bytes of misalignment.
constexpr std::uint64_t kSlot = 4097 * 8 + 63 + 2 * kGuard + 1;
constexpr std::uint64_t kListOffset = (kSlot * (PENSTOCK_MAX_SOURCES + 3) + 63) / 64 * 64;

const std::vector<std::uint64_t>& lengths(bool quick) {
  static const std::vector<std::uint64_t> all = {0,  1,  2,  3,  7,   15,  16,   17,  31,
                                                 33, 63, 64, 65, 127, 255, 1000, 4097};
  static const std::vector<std::uint64_t> few = {0, 1, 2, 7, 17, 64, 65, 127};
  return quick ? few : all;
}
const std::vector<std::uint32_t>& source_counts(bool quick) {
  static const std::vector<std::uint32_t> all = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 64};
  static const std::vector<std::uint32_t> few = {1, 2, 3, 8, 9};
  return quick ? few : all;
}

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Bits {
  int width;
  int fraction;  // 0 for integers
};
Bits bits_of(std::uint32_t type) {
  const int width = static_cast<int>(penstock_type_size(type)) * 8;
  switch (type) {
    case PENSTOCK_F16:
      return {width, 10};
    case PENSTOCK_BF16:
      return {width, 7};
    case PENSTOCK_F8E4M3:
      return {width, 3};
    case PENSTOCK_F8E5M2:
      return {width, 2};
    case PENSTOCK_F32:
      return {width, 23};
    case PENSTOCK_F64:
      return {width, 52};
    default:
      return {width, 0};
  }
}

// Zeros, the smallest and largest subnormal and normal numbers, infinities, NaNs with and without
// payload, values one step beside 1; extremes for integers. Both signs by the lowest bit of `pick`.
std::uint64_t special(Bits b, std::uint64_t pick) {
  const std::uint64_t sign = std::uint64_t{1} << (b.width - 1);
  if (b.fraction == 0) {
    const std::uint64_t values[] = {0, 1, 2, sign, sign - 1, sign + 1, ~std::uint64_t{0}, 3};
    return values[pick % 8];
  }
  const std::uint64_t step = std::uint64_t{1} << b.fraction;
  const std::uint64_t infinity = sign - step;  // f8e4m3: 256 and up, all finite but the last
  const std::uint64_t one = (sign / 2) - step;
  const std::uint64_t values[] = {0,
                                  1,
                                  step - 1,
                                  step,
                                  step + 1,
                                  infinity - 1,
                                  infinity,
                                  infinity + 1,
                                  sign - 1,
                                  one,
                                  one + 1,
                                  one - 1,
                                  infinity - step,
                                  one + step,
                                  infinity | step / 2,
                                  2};
  return values[(pick >> 1) % 16] | ((pick & 1) != 0 ? sign : 0);
}

// An element. What kind of values it has is the same over all sources, because one NaN hides
// whatever else is in a fold.
std::uint64_t element(Bits b, std::uint64_t seed, std::uint32_t source, std::uint64_t i) {
  const std::uint64_t random = mix(seed + mix(i * 131 + source));
  const std::uint64_t mask = b.width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << b.width) - 1;
  switch (mix(seed ^ (i + 1)) % 8) {
    case 0:
      return special(b, random) & mask;
    case 1:
      return random & mask;
    case 2:  // ordinary values, and one source in 16 special
      if (random >> 60 == 0) return special(b, random >> 8) & mask;
      break;
    default:
      break;
  }
  if (b.fraction == 0) return ((random >> 8) % 41 - 20) & mask;
  // Near 1, either sign, all fractions: sums cancel, round and tie.
  const std::uint64_t step = std::uint64_t{1} << b.fraction;
  const std::uint64_t sign = std::uint64_t{1} << (b.width - 1);
  const std::uint64_t one = sign / 2 - step;
  const std::uint64_t exponent = one + (random >> 32) % 4 * step - 2 * step;
  return (exponent + random % step) | ((random >> 62 & 1) != 0 ? sign : 0);
}

std::uint64_t scale_for(std::uint32_t type, std::uint32_t redop, std::uint64_t pick) {
  if (redop != PENSTOCK_PREMUL_SUM) return 0;
  const std::uint64_t f32[] = {0x3f000000, 0x3eaaaaab, 0xbfc00001, 0x00000001, 0x7f800000};
  const std::uint64_t f64[] = {0x3fe0000000000000, 0x3fd5555555555555, 0xbff8000000000001, 1,
                               0x7ff0000000000000};
  const std::uint64_t integers[] = {2, 3, ~std::uint64_t{0}, 0x8000000000000001, 0x101};
  if (type == PENSTOCK_F64) return f64[pick % 5];
  return type >= PENSTOCK_F16 ? f32[pick % 5] : integers[pick % 5];
}

// The arena's slots as they are to be after the descriptor ran.
class Image {
 public:
  explicit Image(Rig& rig) : rig_(rig) {}

  // Slot s holds an operand of `bytes` bytes that starts `skew` bytes after its guard.
  std::byte* lay(std::uint32_t slot, std::uint64_t skew, std::uint64_t bytes) {
    Slot& s = slots_.emplace_back();
    s.offset = slot * kSlot;
    s.start = kGuard + skew;
    s.bytes = bytes;
    s.expected.resize(s.start + bytes + kGuard);
    for (std::size_t i = 0; i < s.expected.size(); ++i)
      s.expected[i] = static_cast<std::byte>(mix(slot * 7919 + i));
    return s.expected.data() + s.start;
  }
  penstock_address address(std::size_t index) const {
    return rig_.address(slots_[index].offset + slots_[index].start);
  }
  std::byte* expected(std::size_t index) {
    return slots_[index].expected.data() + slots_[index].start;
  }

  void store() {
    for (const Slot& s : slots_) {
      std::memcpy(rig_.memory() + s.offset, s.expected.data(), s.expected.size());
      rig_.publish(s.offset, s.expected.size());
    }
  }
  // Empty, or where memory differs first.
  std::string compare(std::uint32_t element_bytes) {
    for (std::size_t k = 0; k < slots_.size(); ++k) {
      const Slot& s = slots_[k];
      rig_.observe(s.offset, s.expected.size());
      const std::byte* actual = rig_.memory() + s.offset;
      if (std::memcmp(actual, s.expected.data(), s.expected.size()) == 0) continue;
      std::size_t at = 0;
      while (actual[at] == s.expected[at]) ++at;
      if (at < s.start || at >= s.start + s.bytes)
        return fmt::format("operand {}: a byte {} the operand was changed", k,
                           at < s.start ? "before" : "after");
      const std::uint64_t i = (at - s.start) / element_bytes;
      std::uint64_t want = 0, got = 0;
      std::memcpy(&want, s.expected.data() + s.start + i * element_bytes, element_bytes);
      std::memcpy(&got, actual + s.start + i * element_bytes, element_bytes);
      return fmt::format("operand {}, element {}: expected {:#x}, got {:#x}", k, i, want, got);
    }
    return {};
  }

 private:
  struct Slot {
    std::uint64_t offset, start, bytes;
    std::vector<std::byte> expected;
  };
  Rig& rig_;
  std::vector<Slot> slots_;
};

struct Case {
  std::uint32_t type, redop, n_src, n_dst;
  std::uint64_t count, seed;
  int in_place;  // index of the source that is the first destination, or -1
};

// Operands 0 .. n_src-1 are the sources, the rest destinations that are none of them.
void run_case(Rig& rig, const Case& c, Tally* tally) {
  const std::uint32_t size = penstock_type_size(c.type);
  const Bits bits = bits_of(c.type);
  const std::uint64_t bytes = c.count * size;
  Image image(rig);
  std::vector<std::vector<std::uint64_t>> values(c.count, std::vector<std::uint64_t>(c.n_src));
  for (std::uint32_t s = 0; s < c.n_src; ++s) {
    std::byte* data = image.lay(s, mix(c.seed + s) % 64, bytes);
    for (std::uint64_t i = 0; i < c.count; ++i) {
      values[i][s] = element(bits, c.seed, s, i);
      std::memcpy(data + i * size, &values[i][s], size);
    }
  }
  const std::uint32_t fresh = c.n_dst - (c.in_place >= 0 ? 1 : 0);
  for (std::uint32_t d = 0; d < fresh; ++d)
    image.lay(PENSTOCK_MAX_SOURCES + d, mix(c.seed + 100 + d) % 64, bytes);

  penstock_descriptor d = make_descriptor(PENSTOCK_OP_REDUCE, c.n_src, c.n_dst);
  d.type = d.out_type = static_cast<std::uint8_t>(c.type);
  d.redop = static_cast<std::uint8_t>(c.redop);
  d.count = c.count;
  d.cookie = c.seed;
  d.scale = scale_for(c.type, c.redop, c.seed);
  if (mix(c.seed + 200) % 4 == 0) d.flags = PENSTOCK_FLAG_STREAM;
  std::vector<std::size_t> targets;
  if (c.in_place >= 0) targets.push_back(static_cast<std::size_t>(c.in_place));
  for (std::uint32_t k = 0; k < fresh; ++k) targets.push_back(c.n_src + k);
  for (std::uint32_t k = 0; k < c.n_dst; ++k) d.dst[k] = image.address(targets[k]);
  std::vector<penstock_address> src(c.n_src);
  for (std::uint32_t s = 0; s < c.n_src; ++s) src[s] = image.address(s);
  if (c.n_src > PENSTOCK_INLINE_SOURCES) {
    d.flags |= PENSTOCK_FLAG_SRC_LIST;
    d.src[0] = rig.address(kListOffset);
    std::memcpy(rig.memory() + kListOffset, src.data(), src.size() * sizeof(src[0]));
    rig.publish(kListOffset, src.size() * sizeof(src[0]));
  } else {
    std::copy(src.begin(), src.end(), d.src);
  }
  image.store();
  for (std::uint64_t i = 0; i < c.count; ++i) {
    const std::uint64_t expected = reference_reduce(c.type, c.redop, d.scale, values[i]);
    for (const std::size_t target : targets)
      std::memcpy(image.expected(target) + i * size, &expected, size);
  }

  const std::string where = fmt::format("n_src {}, n_dst {}, count {}, in place {}, seed {}",
                                        c.n_src, c.n_dst, c.count, c.in_place, c.seed);
  const Result<penstock_completion> done = rig.run(d);
  tally->compared(c.count * c.n_dst);
  if (!done.ok()) return tally->fail(where + ": " + done.status().message());
  tally->expect(done.value().status == PENSTOCK_OK && done.value().cookie == c.seed,
                where + ": completed with " + describe(done.value()));
  if (const std::string wrong = image.compare(size); !wrong.empty())
    tally->fail(where + ": " + wrong);
}

ConformanceRow reduce_row(Rig& rig, std::uint32_t type, std::uint32_t redop) {
  const std::string operation = fmt::format("REDUCE {}", penstock_redop_name(redop));
  const std::string type_name = penstock_type_name(type);
  penstock_descriptor probe = make_descriptor(PENSTOCK_OP_REDUCE, 1, 1);
  probe.type = probe.out_type = static_cast<std::uint8_t>(type);
  probe.redop = static_cast<std::uint8_t>(redop);
  probe.count = 1;
  probe.src[0] = rig.address(0);
  probe.dst[0] = rig.address(64);
  if (const Status accepted = rig.engine().accepts(probe); !accepted.ok()) {
    // Whoever submits it none the less gets the same answer.
    const Result<penstock_completion> done = rig.run(probe);
    if (done.ok() && done.value().status == PENSTOCK_UNSUPPORTED)
      return unsupported_row(operation, type_name, accepted.message());
    Tally tally;
    tally.fail(fmt::format("accepts() refuses with \"{}\", but it completed with {}",
                           accepted.message(),
                           done.ok() ? describe(done.value()) : done.status().message()));
    return tally.row(operation, type_name);
  }
  Tally tally;
  const Capabilities& caps = rig.capabilities();
  std::uint64_t seed = rig.options().seed * 1'000'003 + type * 1009 + redop * 101;
  for (const std::uint32_t n_src : source_counts(rig.options().quick)) {
    if (n_src > caps.max_sources) continue;
    for (const std::uint64_t count : lengths(rig.options().quick)) {
      if (tally.failed()) break;
      if (count * penstock_type_size(type) > caps.max_bytes || (count > 1000 && n_src > 9))
        continue;
      ++seed;
      Case c{type, redop, n_src, 1, count, seed, -1};
      c.n_dst = 1 + static_cast<std::uint32_t>(mix(seed) % std::min(caps.max_destinations, 3u));
      if (mix(seed) >> 33 & 1)
        c.in_place = static_cast<int>(mix(seed) >> 40) % static_cast<int>(n_src);
      run_case(rig, c, &tally);
    }
  }
  return tally.row(operation, type_name);
}

}  // namespace

void check_reduce(Rig& rig, std::vector<ConformanceRow>* rows) {
  for (std::uint32_t redop = 0; redop < PENSTOCK_REDOP_COUNT; ++redop)
    for (std::uint32_t type = 0; type < PENSTOCK_TYPE_COUNT; ++type)
      rows->push_back(reduce_row(rig, type, redop));
}

void check_copy(Rig& rig, std::vector<ConformanceRow>* rows) {
  const Capabilities& caps = rig.capabilities();
  if ((caps.opcodes >> PENSTOCK_OP_COPY & 1) == 0) {
    rows->push_back(unsupported_row("COPY", "", "the engine has no COPY"));
    return;
  }
  Tally tally;
  std::uint64_t seed = rig.options().seed * 77;
  std::vector<std::uint64_t> sizes = lengths(rig.options().quick);
  if (!rig.options().quick) sizes.push_back(4097 * 8);
  for (const std::uint64_t bytes : sizes) {
    for (std::uint32_t n_dst = 1; n_dst <= std::min(caps.max_destinations, 3u); ++n_dst) {
      for (const std::uint32_t way : {0u, 1u, 2u, 3u}) {
        const bool in_place = (way & 1) != 0;
        if (bytes > caps.max_bytes) continue;
        ++seed;
        Image image(rig);
        const std::byte* source = image.lay(0, mix(seed) % 64, bytes);
        const std::vector<std::byte> data(source, source + bytes);
        for (std::uint32_t k = 0; k < n_dst; ++k) image.lay(1 + k, mix(seed + k + 1) % 64, bytes);
        penstock_descriptor d = make_descriptor(PENSTOCK_OP_COPY, 1, n_dst);
        d.count = bytes;
        if ((way & 2) != 0) d.flags = PENSTOCK_FLAG_STREAM;
        d.src[0] = image.address(0);
        for (std::uint32_t k = 0; k < n_dst; ++k)
          d.dst[k] = image.address(in_place && k == 0 ? 0 : 1 + k);
        image.store();
        for (std::uint32_t k = in_place ? 1 : 0; k < n_dst; ++k)
          std::copy(data.begin(), data.end(), image.expected(1 + k));
        const Result<penstock_completion> done = rig.run(d);
        const std::string where = fmt::format("{} bytes, n_dst {}, flags {}, in place {}", bytes,
                                              n_dst, d.flags, in_place);
        tally.compared(bytes * n_dst);
        if (!done.ok())
          return rows->push_back((tally.fail(done.status().message()), tally.row("COPY")));
        tally.expect(done.value().status == PENSTOCK_OK, where + ": " + describe(done.value()));
        if (const std::string wrong = image.compare(1); !wrong.empty())
          tally.fail(where + ": " + wrong);
      }
    }
  }
  rows->push_back(tally.row("COPY"));
}

}  // namespace penstock::conformance
