#include "penstock/sim/incoherent/site.h"

#include <execinfo.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "penstock/sim/incoherent/fiber.h"

// Where the program begins in memory; the linker defines it.
extern "C" const char __executable_start;

namespace penstock::sim {

const char* primitive_name(Primitive primitive) {
  switch (primitive) {
    case Primitive::write_back:
      return "write_back";
    case Primitive::invalidate:
      return "invalidate";
    case Primitive::store_fence:
      return "store_fence";
    case Primitive::full_fence:
      return "full_fence";
  }
  return "?";
}

Result<std::vector<Drop>> parse_drops(const std::string& text) {
  std::vector<Drop> drops;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const std::size_t at = one.find('@');
    Drop drop;
    const std::string name = one.substr(0, std::min(at, one.size()));
    for (int index = 0; index < kPrimitives; ++index) {
      const bool matches = name == "any" || name == primitive_name(static_cast<Primitive>(index));
      if (matches) drop.primitives |= static_cast<std::uint8_t>(1u << index);
    }
    const char* digits = one.data() + (at == std::string::npos ? one.size() : at + 1);
    const char* last = one.data() + one.size();
    const auto parsed = std::from_chars(digits, last, drop.address, 16);
    if (drop.primitives == 0 || parsed.ptr != last || digits == last) {
      return error(Code::invalid_argument,
                   "'{}' names no call site: it must be PRIMITIVE@ADDRESS with PRIMITIVE one of "
                   "write_back, invalidate, store_fence, full_fence, any, and ADDRESS in hex",
                   one);
    }
    drops.push_back(drop);
    begin = end + 1;
  }
  return drops;
}

SiteWatch::SiteWatch(std::vector<Drop> drops, bool records)
    : drops_(std::move(drops)), records_(records) {
  for (const Drop& drop : drops_) {
    droppable_ |= drop.primitives;
    lowest_ = std::min(lowest_, drop.address);
    highest_ = std::max(highest_, drop.address);
  }
}

// Whether a word on the stack is one of the addresses: a backtrace takes microseconds, and mostly
// the site is not among those above the call. What is found may be old, so the backtrace decides.
__attribute__((no_sanitize("address"))) bool SiteWatch::may_be_above(const void* frame) const {
  constexpr std::size_t kLookedAt = 2048;
  const auto* end = static_cast<const char*>(Fiber::end_of_running_stack());
  const auto* at = static_cast<const char*>(frame);
  if (end == nullptr) return true;
  end = std::min(end, at + kLookedAt);
  const auto base = reinterpret_cast<std::uintptr_t>(&__executable_start);
  for (; at + sizeof(std::uint64_t) <= end; at += sizeof(std::uint64_t)) {
    const std::uint64_t offset = *reinterpret_cast<const std::uint64_t*>(at) - base;
    if (offset < lowest_ || offset > highest_) continue;
    for (const Drop& drop : drops_) {
      if (drop.address == offset) return true;
    }
  }
  return false;
}

bool SiteWatch::sees(Primitive primitive, const void* return_address) {
  const bool may_drop = (droppable_ & (1u << static_cast<int>(primitive))) != 0;
  if (!records_ && !(may_drop && may_be_above(__builtin_frame_address(0)))) return false;
  // The platform's own frames come first.
  constexpr int kOwnFrames = 6;
  void* frames[kDepth + kOwnFrames];
  const int count = ::backtrace(frames, static_cast<int>(kDepth) + kOwnFrames);
  int first = 0;
  while (first < count && frames[first] != return_address) ++first;
  PENSTOCK_CHECK(first < count, "the caller of {} is not in the backtrace",
                 primitive_name(primitive));
  Site site{primitive, {}};
  const auto base = reinterpret_cast<std::uintptr_t>(&__executable_start);
  for (std::size_t index = 0; index < kDepth && first + static_cast<int>(index) < count; ++index) {
    const auto at = reinterpret_cast<std::uintptr_t>(frames[first + static_cast<int>(index)]);
    if (at == 0) break;
    site.callers[index] = at - base;
  }
  if (records_) ++sites_[site];
  const bool drop = std::any_of(drops_.begin(), drops_.end(), [&](const Drop& each) {
    if ((each.primitives & (1u << static_cast<int>(primitive))) == 0) return false;
    return std::find(site.callers.begin(), site.callers.end(), each.address) != site.callers.end();
  });
  if (drop) ++dropped_;
  return drop;
}

}  // namespace penstock::sim
