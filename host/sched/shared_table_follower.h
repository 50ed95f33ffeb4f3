// Reads every record of a shared table's log in order, from the first one on, whoever is its
// binder: for audits and replicas.
#ifndef PENSTOCK_SCHED_SHARED_TABLE_FOLLOWER_H_
#define PENSTOCK_SCHED_SHARED_TABLE_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "penstock/sched/shared_table.h"

namespace penstock {

// One thread at a time.
class LogFollower {
 public:
  using Visitor = std::function<void(const LogRecord&)>;

  static Result<LogFollower> open(Pool& pool, const std::string& name);
  // The records that came since; how many. out_of_range for who comes so seldom that records were
  // overwritten, or a reign freed.
  Result<std::uint64_t> poll(const Visitor& visitor);
  std::uint64_t position() const { return position_; }
  // Of the reign that was read last; 0: none yet.
  std::uint64_t epoch() const { return epoch_; }

 private:
  LogFollower(SharedTable shared, Agreement agreement)
      : shared_(std::move(shared)), agreement_(std::move(agreement)) {}
  Status read(std::uint64_t epoch, std::uint64_t to, const Visitor& visitor);
  // Up to where the reign `epoch` began.
  Result<bool> catch_up(std::uint64_t epoch, const Visitor& visitor);

  SharedTable shared_;
  Agreement agreement_;
  std::uint64_t epoch_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace penstock
#endif
