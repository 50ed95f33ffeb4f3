#include "penstock/sched/rescorer_tree.h"

#include <algorithm>

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

std::uint64_t RescorerRows::get(std::uint32_t row) const {
  if (tree_ != nullptr) return tree_->get(row);
  for (const Entry& entry : few_)
    if (entry.row == row) return entry.value;
  return RescorerTree::kAbsent;
}

void RescorerRows::set_few(std::uint32_t row, std::uint64_t value) {
  Entry* const found = std::find_if(few_.data(), few_.data() + few_.size(),
                                    [row](const Entry& entry) { return entry.row == row; });
  const std::size_t at = static_cast<std::size_t>(found - few_.data());
  if (at == few_.size()) {
    if (value == RescorerTree::kAbsent) return;
    few_.push_back({value, row});
  } else if (value == RescorerTree::kAbsent) {
    few_[at] = few_.back();
    few_.pop_back();
  } else {
    few_[at].value = value;
  }
  best_ = RescorerTree::kAbsent;
  for (const Entry& entry : few_) best_ = std::max(best_, entry.value);
  if (few_.size() <= kFew) return;
  tree_ = std::make_unique<RescorerTree>(capacity_);
  for (const Entry& entry : few_) tree_->set(entry.row, entry.value);
  few_ = {};
}

std::uint32_t RescorerRows::first_best(std::uint32_t from) const {
  if (tree_ != nullptr) return tree_->first_best(from);
  std::uint32_t first = RescorerTree::kNoRow;
  for (const Entry& entry : few_)
    if (entry.value == best_ && entry.row >= from) first = std::min(first, entry.row);
  return first;
}

void RescorerRows::shrink() { tree_.reset(); }

}  // namespace penstock
