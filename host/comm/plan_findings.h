// What the two halves of the plan checker share.
#ifndef PENSTOCK_COMM_PLAN_FINDINGS_H_
#define PENSTOCK_COMM_PLAN_FINDINGS_H_

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "penstock/comm/plan.h"

namespace penstock::checker {

// Sentences, each once, up to a limit.
class Findings {
 public:
  explicit Findings(std::size_t limit) : limit_(limit) {}

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (full()) return;
    std::string text = fmt::format(format, std::forward<Args>(args)...);
    if (std::find(list_.begin(), list_.end(), text) == list_.end())
      list_.push_back(std::move(text));
  }
  bool full() const { return list_.size() >= limit_; }
  bool empty() const { return list_.empty(); }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::size_t limit_;
  std::vector<std::string> list_;
};

// "rank 2 step 7 (copy)"
std::string where(const Plan& plan, std::uint32_t rank, std::size_t step);

// What can be seen without following the plan: indices, sizes, places, ownership, the count of
// signals. A plan without findings here can be followed without looking outside of anything.
void check_structure(const Plan& plan, Findings& findings);

// Follows the plan `calls` times in a row. The plan has the right structure.
void check_run(const Plan& plan, int calls, Findings& findings);

}  // namespace penstock::checker
#endif
