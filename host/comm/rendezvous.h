// How the ranks of a comm meet in a pool, and how they leave.
#ifndef PENSTOCK_COMM_RENDEZVOUS_H_
#define PENSTOCK_COMM_RENDEZVOUS_H_

#include <memory>
#include <string>
#include <vector>

#include "penstock/comm/comm.h"
#include "penstock/comm/control.h"

namespace penstock {

// A rank's place in a comm: the control region, the scratch regions and who the others are.
// The first rank to come makes the regions; all hold them (Pool::hold), so that they stay while any
// member lives; the last to leave frees them. A comm that lost a rank takes in nobody: those who
// live leave it, and what is left without a living member is replaced. One thread at a time.
class Membership {
 public:
  // See Comm::join for the errors. `flags` are kMember..., for the others to see.
  static Result<std::unique_ptr<Membership>> join(Pool& pool, const CommConfig& config,
                                                  std::uint64_t flags);
  ~Membership();  // leaves
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  const ControlHeader& header() const { return header_; }
  const ControlTuning& tuning() const { return tuning_; }
  ControlLayout layout() const {
    return {header_.size, tuning_.inline_lines, tuning_.pair_inline_lines};
  }
  // What this rank said when it joined.
  std::uint64_t flags_of(std::uint32_t rank) const { return read_member(rank).flags; }
  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return header_.size; }
  penstock_address scratch(std::uint32_t payload_device) const {
    return scratch_.address[payload_device];
  }
  // Pool offset of a byte of the control region (see ControlLayout).
  penstock_address control(std::uint64_t offset) const { return control_.address + offset; }

  // "rank 2 (pid 4711)".
  std::string describe(std::uint32_t rank) const;
  // The first rank that is proven dead, or kNoRank. Costs system calls.
  std::uint32_t find_dead() const;
  // The first rank that gave up, or kNoRank, with its reason.
  std::uint32_t find_aborted(Status* reason) const;
  // Forgets the place without leaving it: for a forked child, whose parent keeps it.
  void release() { joined_ = false; }
  // Publishes that this rank gives up. Idempotent: the first reason stays.
  void announce_abort(const Status& reason, std::uint32_t culprit);

 private:
  Membership(Pool& pool, const CommConfig& config, std::uint64_t flags)
      : pool_(pool), name_(config.name), rank_(config.rank), flags_(flags) {}

  enum class Attempt { met, retry };
  Result<Attempt> try_join(const CommConfig& config, std::uint64_t deadline_ns);
  Result<bool> adopt_existing(const CommConfig& config);
  Status make_regions(const CommConfig& config);
  Status place_scratch(const CommConfig& config, std::uint32_t payload_devices,
                       ControlHeader* header, ControlScratch* scratch);
  Status enter();
  Result<Attempt> wait_for_all(std::uint64_t deadline_ns);
  void leave();
  void free_regions();
  Status timed_out() const;
  ControlMember read_member(std::uint32_t rank) const;
  Liveness liveness(const ControlMember& member) const;
  std::byte* at(std::uint64_t offset, std::uint64_t bytes) const;
  std::string scratch_name(std::uint32_t payload_device) const;

  Pool& pool_;
  std::string name_;
  std::uint32_t rank_;
  Region control_;
  std::uint64_t flags_;
  ControlHeader header_{};
  ControlTuning tuning_{};
  ControlScratch scratch_{};
  std::vector<Region> scratch_regions_;
  bool joined_ = false;
  bool met_ = false;  // all ranks had come
  bool aborted_ = false;
};

}  // namespace penstock
#endif
