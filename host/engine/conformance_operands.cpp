#include "penstock/engine/conformance_operands.h"

#include <algorithm>
#include <cstring>

namespace penstock::conformance {

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

std::byte* Image::lay(std::uint32_t slot, std::uint64_t skew, std::uint64_t bytes) {
  Slot& s = slots_.emplace_back();
  s.offset = slot * kSlot;
  s.start = kGuard + skew;
  s.bytes = bytes;
  s.expected.resize(s.start + bytes + kGuard);
  for (std::size_t i = 0; i < s.expected.size(); ++i)
    s.expected[i] = static_cast<std::byte>(mix(slot * 7919 + i));
  return s.expected.data() + s.start;
}

void Image::store() {
  for (const Slot& s : slots_) {
    std::memcpy(rig_.memory() + s.offset, s.expected.data(), s.expected.size());
    rig_.publish(s.offset, s.expected.size());
  }
}

std::string Image::compare(std::uint32_t element_bytes) {
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

void set_sources(Rig& rig, const std::vector<penstock_address>& src, penstock_descriptor* d) {
  if (src.size() <= PENSTOCK_INLINE_SOURCES) {
    std::copy(src.begin(), src.end(), d->src);
    return;
  }
  d->flags |= PENSTOCK_FLAG_SRC_LIST;
  d->src[0] = rig.address(kListOffset);
  std::memcpy(rig.memory() + kListOffset, src.data(), src.size() * sizeof(src[0]));
  rig.publish(kListOffset, src.size() * sizeof(src[0]));
}

bool refused(Rig& rig, const penstock_descriptor& probe, const std::string& operation,
             const std::string& type_name, std::vector<ConformanceRow>* rows) {
  const Status accepted = rig.engine().accepts(probe);
  if (accepted.ok()) return false;
  // Whoever submits it none the less gets the same answer.
  const Result<penstock_completion> done = rig.run(probe);
  if (done.ok() && done.value().status == PENSTOCK_UNSUPPORTED) {
    rows->push_back(unsupported_row(operation, type_name, accepted.message()));
    return true;
  }
  Tally tally;
  tally.fail(fmt::format("accepts() refuses with \"{}\", but it completed with {}",
                         accepted.message(),
                         done.ok() ? describe(done.value()) : done.status().message()));
  rows->push_back(tally.row(operation, type_name));
  return true;
}

}  // namespace penstock::conformance
