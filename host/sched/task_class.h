// Decisions about one class of tasks (equal records apart from `tie`) under one program, kept up to
// date row by row instead of being worked out from the whole table each time.
//
// A row's score is the sum of two parts. What depends on the row's own cells alone and is not
// normalised is its **base**. Everything else (normalised scores, counts by domain) is the same for
// all rows with the same **key**: the tuple of the row's raw scores that are normalised, and of its
// domains or of the counts in them. Rows with one key make a **group**; a group has a tree of its
// rows' bases, and one bonus that its rows get on top. So a commit costs the work on one row, and
// what moves with it for thousands of rows (the counts of a zone, the largest raw score, the number
// of feasible rows) is done group by group.
//
// A domain column with few domains enters the key as the domain itself (**narrow**), so that its
// counts are looked up when the groups are rated; one with many domains enters as the count in the
// row's domain (**wide**), and the rows of a domain are looked at again when its count changes.
//
// The answer is that of scalar_select on the same table. Where a class would need more groups than
// it may have, it gives up, and the caller scans.
#ifndef PENSTOCK_SCHED_TASK_CLASS_H_
#define PENSTOCK_SCHED_TASK_CLASS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "penstock/engine/host_engine.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/sched/rescorer_domains.h"
#include "penstock/sched/rescorer_tree.h"

namespace penstock {

// Beyond an eighth of the rows (but 64) groups would cost more than a scan.
struct TaskClassLimits {
  std::uint32_t narrow_domains = 64;               // a domain column with at most so many is narrow
  std::uint32_t groups = 4096;                     // at most 65534
  std::uint64_t bytes = std::uint64_t{256} << 20;  // of trees
};

// One thread at a time; program, task, table and domains as scalar_select wants them, and the
// program and domains outlive the class.
class TaskClass {
 public:
  TaskClass(const TableView& table, const penstock_program& program, const penstock_task& task,
            RescorerDomains* domains, const TaskClassLimits& limits);
  TaskClass(const TaskClass&) = delete;
  TaskClass& operator=(const TaskClass&) = delete;

  // False: the class cannot be kept, or has more groups than it may have; nothing else is to be
  // called then except rebuild().
  bool usable() const { return usable_; }

  // Looks at every row.
  void rebuild();
  // Cells of the row changed: resources, GPUs and free columns; with `all` also bits and domains.
  void refresh(std::uint32_t row, bool all);
  // Whether a bit column or count column matters.
  bool uses_bits(std::uint32_t column) const { return bits_used_.has(column); }
  bool uses_counts(std::uint32_t column) const { return counts_used_.has(column); }
  // A cell of a count column changed.
  void refresh_count(std::uint32_t column, std::uint32_t domain);

  // Fills feasible, n_best and best of a zeroed result.
  void choose(std::uint64_t tie, penstock_result* result);

  std::uint32_t groups() const { return static_cast<std::uint32_t>(group_of_key_.size()); }
  std::uint64_t bytes() const;

 private:
  static constexpr std::uint32_t kMaxParts = 16;
  static constexpr std::uint16_t kNoGroup = 0xffff;
  using Key = std::array<std::int64_t, kMaxParts>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  // A few columns. Most that it is asked about are not among them, which one word tells.
  struct ColumnSet {
    std::uint64_t hint = 0;  // bit column % 64
    bool all = false;
    std::vector<std::uint32_t> columns;

    void add(std::uint32_t column) {
      hint |= std::uint64_t{1} << column % 64;
      columns.push_back(column);
    }
    bool has(std::uint32_t column) const {
      return all || ((hint >> column % 64 & 1) != 0 &&
                     std::find(columns.begin(), columns.end(), column) != columns.end());
    }
  };
  struct BitTest {
    const std::uint64_t* words;
    std::uint64_t flip;
  };
  struct FitTest {
    const std::int64_t* allocatable;
    const std::int64_t* requested;
    std::int64_t request;
  };
  // LEAST_ALLOCATED, MOST_ALLOCATED, BALANCED: shares [begin, end) of shares_.
  struct Share {
    const std::int64_t* allocatable;
    const std::int64_t* used;
    std::int64_t request;
    std::uint32_t weight;
  };
  struct ShareScore {
    std::uint8_t op;
    std::int32_t weight;
    std::uint32_t begin;
    std::uint32_t end;
  };
  // Terms about wide columns of which each row can be asked by itself.
  enum class Ask { absent, present, has_domain };
  struct DomainTest {
    std::uint16_t domain;
    std::uint16_t count;
    Ask ask;
  };
  struct DomainShare {
    std::uint16_t domain;
    std::uint16_t count;
    std::int64_t weight;
  };

  enum class PartKind { domain, bits, raw, count, present, sum };
  struct Part {
    PartKind kind;
    std::uint16_t domain;
    std::uint16_t count;
    const penstock_column_op* op;  // bits, raw, sum

    // Whether only changes of bits and domains change it.
    bool steady() const { return kind == PartKind::domain || kind == PartKind::bits; }
  };
  // A domain term as an operation on groups sees it.
  struct Term {
    const penstock_domain_term* record;
    bool narrow;
    std::uint32_t part;
    bool stale = true;     // the next
    std::int64_t min = 0;  // SPREAD as a filter: as its rule says
  };
  // A PRESENT term of a group of which some term may be the first.
  struct Presence {
    const penstock_domain_term* record;
    bool stale = true;  // the next
    bool any = false;   // of its counts is above 0
  };
  struct GroupFilter {
    std::vector<Term> terms;
    std::vector<Presence> present;
  };
  // How many live groups have a domain, by domain + 1, and how many different ones there are.
  struct DomainSet {
    std::vector<std::uint32_t> groups;
    std::uint32_t different = 0;

    void add(std::int64_t domain);
    void remove(std::int64_t domain);
  };
  struct GroupScore {
    const penstock_column_op* op = nullptr;
    std::uint32_t part = kMaxParts;  // bits, raw or sum; kMaxParts: none
    std::vector<Term> terms;
    // What the keys of the live groups say: of each term, and of the part; which of them SPREAD
    // ignores, and the different domains of each term among the others.
    std::vector<std::vector<std::int64_t>> term_keys;
    std::vector<std::int64_t> part_keys;
    std::vector<std::uint8_t> ignored;
    std::vector<DomainSet> domains;
    ScoreRange range;  // of a steady score, when its part of the bonuses was summed up

    bool steady() const { return terms.empty(); }
  };
  struct Group {
    explicit Group(std::uint32_t capacity) : rows(capacity) {}
    Key key{};
    RescorerRows rows;
  };
  struct Place {
    std::uint16_t group;
    std::uint32_t row;
    std::int64_t score;
  };

  // ---- task_class_plan.cpp: what the program asks, sorted by who answers it ----
  void plan();
  void plan_filter(const penstock_column_op& op);
  void plan_score(const penstock_column_op& op);
  void plan_shares(const penstock_column_op& op);
  void add_group_score(const penstock_column_op& op, std::uint32_t part);
  void plan_domain_filter(const penstock_column_op& op);
  void plan_domain_score(const penstock_column_op& op);
  bool is_narrow(std::uint16_t domain) const;
  bool has_terms(const penstock_column_op& op) const;
  Term make_term(const penstock_domain_term& record, PartKind wide_kind);
  std::uint32_t add_part(const Part& part);
  void watch(std::uint16_t domain, std::uint16_t count);

  // ---- task_class_rows.cpp: one row ----
  bool bits_hold(std::uint32_t row) const;
  bool cells_hold(std::uint32_t row) const;
  std::int64_t base(std::uint32_t row) const;
  std::int64_t share_score(const ShareScore& score, std::uint32_t row) const;
  std::int64_t balanced_score(const ShareScore& score, std::uint32_t row) const;
  std::int64_t part_value(const Part& part, std::uint32_t row) const;
  std::int64_t count_at(std::uint16_t column, std::int32_t domain) const;

  // ---- task_class.cpp: groups of rows ----
  void set_value(std::uint16_t group, std::uint32_t row, std::uint64_t value);
  bool same_key(const Group& group, const Key& key) const {
    return std::equal(key.begin(), key.begin() + parts_.size(), group.key.begin());
  }
  void leave(std::uint32_t row);
  void enter(std::uint32_t row, const Key& key, std::int64_t base);
  std::uint16_t find_group(const Key& key);

  // ---- task_class_groups.cpp: groups among each other ----
  void rate_groups();
  void clear_live();
  void list_live();
  void add_live(std::uint16_t group);
  void remove_live(std::uint16_t group);
  void rate_steady();
  void refresh_terms();
  bool passes(const Group& group) const;
  bool passes(const GroupFilter& filter, const Group& group) const;
  std::int64_t domain_in(const Term& term, const Group& group) const;
  std::int64_t count_of(const Term& term, std::int64_t key) const;
  void rate_moving(const GroupScore& score);
  void raw_spread(const GroupScore& score);
  void normalise(const GroupScore& score);
  bool find_best(Place* best) const;
  std::uint32_t best_row(const RescorerRows& rows) const;

  TableView table_;
  const penstock_program& program_;
  penstock_task task_;       // tie: of the decision in hand
  DecisionContext context_;  // for operations on a row's own cells
  RescorerDomains* domains_;
  TaskClassLimits limits_;
  bool usable_ = true;

  std::vector<BitTest> bit_tests_;
  std::vector<FitTest> fit_tests_;
  std::vector<const penstock_column_op*> row_filters_;
  std::vector<DomainTest> domain_tests_;
  std::vector<Share> shares_;
  std::vector<ShareScore> share_scores_;
  std::vector<const penstock_column_op*> row_scores_;
  std::vector<DomainShare> domain_shares_;
  std::vector<Part> parts_;
  std::vector<GroupFilter> group_filters_;
  std::vector<GroupScore> group_scores_;
  bool rates_follow_counts_ = false;  // groups are to be rated again whenever anything changed
  // The count columns that enter keys or bases row by row, and how they are read.
  struct Watch {
    std::uint16_t domain;
    std::uint16_t count;
  };
  std::vector<Watch> watched_;
  ColumnSet counts_used_;
  ColumnSet bits_used_;

  std::vector<std::uint64_t> bits_hold_;  // a bit per row: what bits_hold() said
  std::vector<std::uint16_t> group_of_;   // by row
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::uint16_t> unused_groups_;
  std::unordered_map<Key, std::uint16_t, KeyHash> group_of_key_;
  std::vector<std::uint64_t> root_;      // by group: the best of its rows
  std::vector<std::uint32_t> rows_in_;   // by group
  std::vector<std::uint16_t> place_of_;  // by group: its place in live_; kNoGroup: not there
  std::uint16_t last_group_ = kNoGroup;  // that a row entered
  std::uint32_t trees_ = 0;              // groups that have one
  std::uint32_t most_trees_ = 1;
  static constexpr std::int64_t kUnrated = INT64_MIN;
  bool listed_ = false;   // live_ has the groups that it should
  bool settled_ = false;  // steady_
  bool rated_ = false;    // feasible_ and bonus_
  std::uint32_t feasible_ = 0;
  std::vector<std::uint16_t> live_;   // feasible groups; what follows goes by their place here
  std::vector<std::int64_t> steady_;  // of the bonus, what does not move with counts
  std::vector<std::int64_t> bonus_;
  std::vector<std::int64_t> raw_;  // scratch
  std::vector<double> sums_;       // scratch
  std::vector<double> by_domain_;  // scratch
};

}  // namespace penstock
#endif
