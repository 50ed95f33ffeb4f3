#include "penstock/sched/rescorer_tree.h"

#include "penstock/base/status.h"

namespace penstock {
namespace {

constexpr std::uint64_t kLine = 64;

// Cells of a level in whole cache lines.
std::uint64_t padded(std::uint64_t cells) { return (cells + 7) / 8 * 8; }

}  // namespace

std::uint64_t RescorerTree::bytes(std::uint32_t rows) {
  std::uint64_t cells = 0;
  std::uint64_t count = rows > 0 ? rows : 1;
  for (;; count = padded(count) / kFan) {
    cells += padded(count);
    if (count == 1) break;
  }
  return cells * sizeof(std::uint64_t) + kLine;
}

RescorerTree::RescorerTree(std::uint32_t rows) {
  // calloc gives pages that cost nothing until they are written.
  memory_.reset(std::calloc(1, bytes(rows)));
  PENSTOCK_CHECK(memory_ != nullptr, "no memory for a tree of {} rows", rows);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
  auto* cells = reinterpret_cast<std::uint64_t*>((address + kLine - 1) / kLine * kLine);
  std::uint64_t count = rows > 0 ? rows : 1;
  for (;; count = padded(count) / kFan) {
    level_[top_] = cells;
    count_[top_] = static_cast<std::uint32_t>(count);
    cells += padded(count);
    if (count == 1) break;
    top_++;
  }
}

}  // namespace penstock
