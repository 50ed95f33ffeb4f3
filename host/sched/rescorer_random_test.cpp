// Rescorer against scalar_select over sequences of decisions and changes that a seed makes. A
// failure names the seed; PENSTOCK_SEED=<seed> runs it alone, PENSTOCK_OPERATIONS=<n> sets how many
// operations are made in all.
#include <gtest/gtest.h>

#include <cstdlib>

#include "penstock/descriptor/descriptor.h"
#include "penstock/engine/scalar_select.h"
#include "penstock/engine/update.h"
#include "penstock/sched/rescorer.h"
#include "penstock/sched/rescorer_case.h"

namespace penstock {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Placed {
  std::size_t task;
  std::uint32_t row;
  std::uint32_t gpu_mask;
};

class Sequence {
 public:
  Sequence(std::uint64_t seed, RescorerCase made)
      : seed_(seed),
        random_(seed ^ 0x5eed),
        made_(std::move(made)),
        view_(made_.table.view()),
        kernels_(scalar_kernels()),
        rescorer_(view_, *kernels_, made_.options) {}

  void run(std::uint64_t operations) {
    for (std::uint64_t i = 0; i < operations && !::testing::Test::HasFailure(); i++) {
      step_ = i;
      if (random_.below(100) < 75) {
        decide();
      } else if (random_.one_in(3)) {
        release();
      } else if (random_.one_in(40)) {
        damage();
      } else {
        change();
      }
    }
  }
  const RescorerCounters& counters() const { return rescorer_.counters(); }

 private:
  void decide() {
    const std::size_t which = random_.below(made_.tasks.size());
    penstock_task task = made_.tasks[which];
    task.tie = random_.below(1000);
    const bool commit = random_.one_in(2);
    penstock_result expected;
    scalar_select(view_, made_.program, task, false, &expected);
    penstock_result actual;
    const Status status = rescorer_.select(made_.program, {&task, 1}, commit, &actual);
    ASSERT_TRUE(status.ok()) << where() << status.to_string();
    if (commit && actual.status == PENSTOCK_OUT_OF_RANGE) {
      ASSERT_EQ(expected.status, PENSTOCK_OK) << where();
      // The row is as it was, so that it refuses again.
      ASSERT_EQ(
          scalar_commit(view_, task, static_cast<std::uint32_t>(expected.row), expected.gpu_mask),
          PENSTOCK_OUT_OF_RANGE)
          << where();
      expected.status = PENSTOCK_OUT_OF_RANGE;
    }
    ASSERT_EQ(difference(expected, actual), "") << where() << "task " << which;
    if (commit && actual.status == PENSTOCK_OK)
      placed_.push_back({which, static_cast<std::uint32_t>(actual.row), actual.gpu_mask});
  }

  void release() {
    if (placed_.empty()) return;
    const std::size_t index = random_.below(placed_.size());
    const Placed placed = placed_[index];
    placed_[index] = placed_.back();
    placed_.pop_back();
    const penstock_task& task = made_.tasks[placed.task];
    if (scalar_release(view_, task, placed.row, placed.gpu_mask) != PENSTOCK_OK) return;
    for (const std::uint16_t column : task.set_bits)
      if (column != 0) made_.table.set_bit(column, placed.row, false);
    rescorer_.task_changed(placed.row, task);
  }

  void change() {
    const std::vector<penstock_update> updates =
        make_rescorer_change(random_, *made_.table.header());
    std::uint64_t bad = 0;
    ASSERT_EQ(apply_updates(view_, updates.data(), updates.size(), &bad), PENSTOCK_OK) << where();
    rescorer_.updated(updates);
  }

  // What a broken writer may leave in a shared table.
  void damage() {
    constexpr std::int64_t kCells[] = {INT64_MIN, -1, PENSTOCK_MAX_QUANTITY + 1, INT64_MAX};
    const auto row = static_cast<std::uint32_t>(random_.below(view_.header->capacity));
    std::int64_t* const bases[] = {view_.allocatable, view_.requested, view_.scored};
    view_.column(bases[random_.below(3)],
                 static_cast<std::uint32_t>(random_.below(view_.header->n_resources)))[row] =
        kCells[random_.below(4)];
    if (view_.header->n_counts > 0)
      view_.count_column(static_cast<std::uint32_t>(random_.below(view_.header->n_counts)))[row] =
          random_.one_in(2) ? INT32_MIN : INT32_MAX;
    if (view_.header->n_domains > 0)
      view_.domain_column(static_cast<std::uint32_t>(random_.below(view_.header->n_domains)))[row] =
          random_.one_in(2) ? -2 : INT32_MAX;
    rescorer_.table_changed();
  }

  std::string where() const {
    return "PENSTOCK_SEED=" + std::to_string(seed_) + " step " + std::to_string(step_) + ": ";
  }

  std::uint64_t seed_;
  SeededRandom random_;
  RescorerCase made_;
  TableView view_;
  std::unique_ptr<const Kernels> kernels_;
  Rescorer rescorer_;
  std::vector<Placed> placed_;
  std::uint64_t step_ = 0;
};

constexpr std::uint64_t kPerCase = 400;

// Half of the cases are those of SELECT's conformance.
RescorerCase make_case(std::uint64_t seed) {
  if (seed % 2 == 0) return make_rescorer_case(seed);
  SelectRules rules;
  rules.max_rows = 150;
  SelectCase made = make_select_case(seed, rules);
  RescorerOptions options;
  options.scan_first = seed % 8 == 1;
  return {std::move(made.table), made.program, std::move(made.tasks), options};
}

TEST(RescorerRandom, DecidesAsScalarSelectDoes) {
  const std::uint64_t only = number_from("PENSTOCK_SEED", UINT64_MAX);
  if (only != UINT64_MAX) {
    Sequence(only, make_case(only)).run(kPerCase);
    return;
  }
  const std::uint64_t operations = number_from("PENSTOCK_OPERATIONS", PENSTOCK_OPERATIONS);
  RescorerCounters sum;
  for (std::uint64_t seed = 1; seed <= operations / kPerCase && !HasFailure(); seed++) {
    Sequence sequence(seed, make_case(seed));
    sequence.run(kPerCase);
    sum.decisions += sequence.counters().decisions;
    sum.scans += sequence.counters().scans;
    sum.refreshes += sequence.counters().refreshes;
  }
  // Most of what was compared was not a scan against a scan.
  EXPECT_GT(sum.decisions, operations / 2);
  EXPECT_LT(sum.scans, sum.decisions / 2);
  EXPECT_GT(sum.refreshes, sum.decisions / 4);
  RecordProperty("decisions", std::to_string(sum.decisions));
  RecordProperty("scans", std::to_string(sum.scans));
}

}  // namespace
}  // namespace penstock
