// What a byte holds while a plan is followed symbolically.
#ifndef PENSTOCK_COMM_PLAN_CONTENTS_H_
#define PENSTOCK_COMM_PLAN_CONTENTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace penstock::checker {

// A range [0, size) in segments of equal state, split on demand.
template <typename State>
class Intervals {
 public:
  struct Segment {
    std::uint64_t begin;
    std::uint64_t end;
    State state;
  };

  void reset(std::uint64_t size, const State& state) {
    segments_.clear();
    if (size > 0) segments_.push_back({0, size, state});
  }
  // The segments of [begin, end), cut so that they cover it exactly. begin < end <= size.
  // Valid until the next call.
  std::span<Segment> cover(std::uint64_t begin, std::uint64_t end) {
    const std::size_t first = cut(begin);
    const std::size_t last = cut(end);
    return std::span<Segment>(segments_).subspan(first, last - first);
  }
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  // Index of the segment that begins at `at`, which becomes a boundary.
  std::size_t cut(std::uint64_t at) {
    const auto found = std::lower_bound(
        segments_.begin(), segments_.end(), at,
        [](const Segment& segment, std::uint64_t position) { return segment.begin < position; });
    const auto index = static_cast<std::size_t>(found - segments_.begin());
    if (index == 0 || (found != segments_.end() && found->begin == at)) return index;
    Segment& before = segments_[index - 1];
    if (before.end <= at) return index;
    Segment rest{at, before.end, before.state};
    before.end = at;
    segments_.insert(found, std::move(rest));
    return index;
  }

  std::vector<Segment> segments_;
};

// One input of an expression: the byte at position x of what holds the expression is byte
// x + shift + offset of this part, where shift belongs to the Content. With `inner`, it is that
// byte of another expression, a fold; call, rank and part are those of its first input.
struct Term {
  std::uint32_t call = 0;
  std::uint32_t rank = 0;
  std::uint32_t part = 0;
  std::int64_t offset = 0;
  std::uint32_t inner = 0;
  bool operator<(const Term& other) const {
    return std::tie(call, rank, part, offset, inner) <
           std::tie(other.call, other.rank, other.part, other.offset, other.inner);
  }
};

// An expression, moved by `shift` bytes. 0 is "undefined".
struct Content {
  std::uint32_t expression = 0;
  std::int64_t shift = 0;
  bool operator==(const Content&) const = default;
};

// Expressions by number: equal ones have equal numbers.
class Expressions {
 public:
  Expressions() { table_.push_back({}); }

  Content input(std::uint32_t call, std::uint32_t rank, std::uint32_t part) {
    return {intern({false, {{call, rank, part, 0, 0}}}), 0};
  }
  // The fold of terms whose offsets are relative to position `at` of what shall hold it.
  Content fold(std::vector<Term> terms, std::uint64_t at) {
    const std::int64_t first = terms.front().offset;
    for (Term& term : terms) term.offset -= first;
    return {intern({true, std::move(terms)}), first - static_cast<std::int64_t>(at)};
  }
  // A fold as a term: the byte at position `at` of what holds it.
  Term inner(const Content& content, std::uint64_t at) const {
    Term term = table_[content.expression].terms.front();
    term.offset = static_cast<std::int64_t>(at) + content.shift;
    term.inner = content.expression;
    return term;
  }
  bool is_input(const Content& content) const {
    return content.expression != 0 && !table_[content.expression].is_fold;
  }
  // Of inputs, not of folds.
  bool is_simple_fold(const Content& content) const {
    const Expression& expression = table_[content.expression];
    return expression.is_fold && expression.terms.front().inner == 0;
  }
  const std::vector<Term>& terms(const Content& content) const {
    return table_[content.expression].terms;
  }
  // "byte 64 of part 0 of rank 2", "the fold over ranks 0, 1, 2 at byte 64", "nothing".
  std::string describe(const Content& content, std::uint64_t position) const;

 private:
  struct Expression {
    bool is_fold = false;
    std::vector<Term> terms;
    bool operator<(const Expression& other) const {
      return std::tie(is_fold, terms) < std::tie(other.is_fold, other.terms);
    }
  };
  std::uint32_t intern(Expression expression) {
    const auto next = static_cast<std::uint32_t>(table_.size());
    const auto [found, added] = numbers_.emplace(expression, next);
    if (added) table_.push_back(std::move(expression));
    return found->second;
  }

  std::vector<Expression> table_;
  std::map<Expression, std::uint32_t> numbers_;
};

}  // namespace penstock::checker
#endif
