#include "penstock/memory/inline_block.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace penstock {
namespace {

constexpr std::uint64_t kLine = PENSTOCK_CACHE_LINE;
constexpr std::uint64_t kTagAt = 48;
constexpr std::uint64_t kSequenceAt = 56;

std::atomic<std::uint64_t>& word(char* line, std::uint64_t at) {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(line + at);
}

// Constant lengths become a few moves.
inline void copy_line(char* to, const char* from, std::uint64_t bytes) {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case kInlineFirstBytes:
      std::memcpy(to, from, kInlineFirstBytes);
      return;
    case kInlineLineBytes:
      std::memcpy(to, from, kInlineLineBytes);
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

}  // namespace

void InlineBlock::write(std::uint64_t sequence, std::uint64_t tag, const void* data,
                        std::uint64_t bytes) const {
  const auto* from = static_cast<const char*>(data);
  char* line = lines_;
  std::uint64_t room = kInlineFirstBytes;
  word(line, kTagAt).store(tag, std::memory_order_relaxed);
  for (std::uint64_t left = bytes;;) {
    const std::uint64_t here = std::min(left, room);
    copy_line(line, from, here);
    word(line, kSequenceAt).store(sequence, std::memory_order_release);
    left -= here;
    if (left == 0) break;
    from += here;
    line += kLine;
    room = kInlineLineBytes;
  }
  // No fence: lines may arrive in any order, because each carries its own flag.
  if (software_) {
    pool_->publish(lines_, static_cast<std::size_t>(line + kLine - lines_));
  }
}

InlineBlock::Arrival InlineBlock::read(std::uint64_t sequence, std::uint64_t expected_tag,
                                       std::uint64_t mask, void* out, std::uint64_t bytes,
                                       std::uint64_t* taken, std::uint64_t* tag) const {
  const std::uint64_t lines = inline_lines(bytes);
  std::uint64_t i = *taken;
  if (software_) {
    pool_->observe(lines_ + i * kLine, (lines - i) * kLine);
  }
  for (; i < lines; ++i) {
    char* line = lines_ + i * kLine;
    if (word(line, kSequenceAt).load(std::memory_order_acquire) != sequence) break;
    if (i == 0) {
      *tag = word(line, kTagAt).load(std::memory_order_relaxed);
      if (((*tag ^ expected_tag) & mask) != 0) return Arrival::other_tag;
    }
    const std::uint64_t at = i == 0 ? 0 : kInlineFirstBytes + (i - 1) * kInlineLineBytes;
    const std::uint64_t room = i == 0 ? kInlineFirstBytes : kInlineLineBytes;
    copy_line(static_cast<char*>(out) + at, line, std::min(bytes - at, room));
  }
  *taken = i;
  return i == lines ? Arrival::complete : Arrival::partial;
}

}  // namespace penstock
