// The best of many rows, at hand: a tree over one value per row in which every inner cell holds the
// largest of the eight below it. A change goes up only as far as it changes a largest value, so
// that most changes end in the first or second level.
#ifndef PENSTOCK_SCHED_RESCORER_TREE_H_
#define PENSTOCK_SCHED_RESCORER_TREE_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace penstock {

// One thread at a time.
class RescorerTree {
 public:
  static constexpr std::uint64_t kAbsent = 0;
  static constexpr std::uint32_t kNoRow = UINT32_MAX;

  // Scores keep their order; a score within +-2^62 is never kAbsent.
  static std::uint64_t encode(std::int64_t score) {
    return static_cast<std::uint64_t>(score) ^ (std::uint64_t{1} << 63);
  }
  static std::int64_t decode(std::uint64_t value) {
    return static_cast<std::int64_t>(value ^ (std::uint64_t{1} << 63));
  }

  // All rows of [0, rows) absent. Memory that stays absent is not touched.
  explicit RescorerTree(std::uint32_t rows);

  static std::uint64_t bytes(std::uint32_t rows);

  std::uint64_t get(std::uint32_t row) const { return level_[0][row]; }
  // The largest value of all rows; kAbsent if all are.
  std::uint64_t best() const { return level_[top_][0]; }

  void set(std::uint32_t row, std::uint64_t value) {
    std::uint32_t at = row;
    for (std::uint32_t level = 0;; level++) {
      const std::uint64_t old = level_[level][at];
      if (old == value) return;
      level_[level][at] = value;
      if (level == top_) return;
      const std::uint64_t largest = level_[level + 1][at / kFan];
      at /= kFan;
      if (value > largest) continue;
      if (old < largest) return;
      value = largest_of(level_[level] + std::size_t{at} * kFan);
    }
  }

  // The first row at or after `from` that has the value best(); kNoRow if there is none.
  std::uint32_t first_best(std::uint32_t from) const {
    const std::uint64_t value = best();
    std::uint32_t level = from == 0 ? top_ : 0;
    std::uint32_t at = from;
    for (;; level++) {
      if (at >= count_[level]) return kNoRow;
      if (level == top_) break;
      const std::uint32_t block = at / kFan;
      const std::uint32_t found =
          equal_in(level_[level] + std::size_t{block} * kFan, value) & (0xffu << at % kFan);
      if (found != 0) {
        at = block * kFan + static_cast<std::uint32_t>(__builtin_ctz(found));
        break;
      }
      at = block + 1;
    }
    while (level > 0) {
      level--;
      at *= kFan;
      at += static_cast<std::uint32_t>(__builtin_ctz(equal_in(level_[level] + at, value) | 0x100u));
    }
    return at;
  }

 private:
  static constexpr std::uint32_t kFan = 8;  // the cells of a cache line
  static constexpr std::uint32_t kMaxLevels = 9;

  struct FreeDeleter {
    void operator()(void* memory) const { std::free(memory); }
  };

  static std::uint64_t largest_of(const std::uint64_t* cells) {
    std::uint64_t largest = cells[0];
    for (std::uint32_t i = 1; i < kFan; i++) largest = cells[i] > largest ? cells[i] : largest;
    return largest;
  }
  static std::uint32_t equal_in(const std::uint64_t* cells, std::uint64_t value) {
    std::uint32_t mask = 0;
    for (std::uint32_t i = 0; i < kFan; i++) mask |= std::uint32_t{cells[i] == value} << i;
    return mask;
  }

  std::unique_ptr<void, FreeDeleter> memory_;
  std::uint64_t* level_[kMaxLevels] = {};
  std::uint32_t count_[kMaxLevels] = {};
  std::uint32_t top_ = 0;
};

// The same for a set that may be small: a list while it has few rows, a tree from then on.
class RescorerRows {
 public:
  static constexpr std::size_t kFew = 32;

  explicit RescorerRows(std::uint32_t capacity) : capacity_(capacity) {}

  bool has_tree() const { return tree_ != nullptr; }
  std::uint64_t best() const { return best_; }
  // kAbsent if it is.
  std::uint64_t get(std::uint32_t row) const;
  void set(std::uint32_t row, std::uint64_t value) {
    if (tree_ == nullptr) {
      set_few(row, value);
      return;
    }
    tree_->set(row, value);
    best_ = tree_->best();
  }
  // As of the tree.
  std::uint32_t first_best(std::uint32_t from) const;
  // When all rows are absent: gives back the tree.
  void shrink();

 private:
  struct Entry {
    std::uint64_t value;
    std::uint32_t row;
  };
  void set_few(std::uint32_t row, std::uint64_t value);

  std::uint32_t capacity_;
  std::uint64_t best_ = RescorerTree::kAbsent;
  std::vector<Entry> few_;  // in no order
  std::unique_ptr<RescorerTree> tree_;
};

}  // namespace penstock
#endif
