// The binder of a shared table (shared_table.h): it takes the role, handles the schedulers'
// requests one after another, and writes the log.
#ifndef PENSTOCK_SCHED_BINDER_H_
#define PENSTOCK_SCHED_BINDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "penstock/engine/engine.h"
#include "penstock/memory/agreement_role.h"
#include "penstock/sched/shared_table.h"

namespace penstock {

struct BinderStatistics {
  std::uint64_t reigns = 0;  // how often this one took the role
  std::uint64_t handled = 0;
  std::uint64_t done = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t refused = 0;
};

// One thread at a time.
class Binder {
 public:
  // As binder `index` of the table's `binders`; busy if another process is.
  static Result<std::unique_ptr<Binder>> open(Pool& pool, const std::string& name,
                                              std::uint32_t index);
  ~Binder();  // gives the role up
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  // Waits for the role and serves, as long as `go_on` says so; it is asked about every millisecond.
  // A role that was lost is waited for again. Errors: what the pool says (no_space), corrupt.
  Status serve(const std::function<bool()>& go_on);
  const BinderStatistics& statistics() const { return statistics_; }

 private:
  class Reign;
  Binder(SharedTable shared, const Region& claim, std::uint32_t index,
         std::shared_ptr<Engine> engine);
  Status take_role(const std::function<bool()>& go_on);
  // revoked: the role is another's.
  Status keep_role();
  Status begin_reign();
  void free_old_reigns();

  SharedTable shared_;
  Region claim_;
  std::uint32_t index_;
  std::shared_ptr<Engine> engine_;  // for what it chooses itself
  std::optional<RoleLease> role_;
  std::uint64_t renew_at_ns_ = 0;
  std::unique_ptr<Reign> reign_;
  std::set<std::uint64_t> begun_;  // epochs of this one's reigns
  BinderStatistics statistics_;
};

}  // namespace penstock
#endif
