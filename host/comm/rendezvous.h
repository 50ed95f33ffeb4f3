// How the ranks of a comm meet in a pool, watch each other, and leave.
#ifndef PENSTOCK_COMM_RENDEZVOUS_H_
#define PENSTOCK_COMM_RENDEZVOUS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/comm/comm.h"
#include "penstock/comm/control.h"
#include "penstock/comm/life.h"
#include "penstock/memory/agreement.h"

namespace penstock {

// Under what ranks meet.
struct Meeting {
  std::string region;  // name of the control region; a comm of CommConfig::name has that name
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint64_t epoch = 1;
  // Of a comm that grows: the ranks below belong to its members, the rest to newcomers.
  std::uint32_t settled = 0;
  // Who meets is known: a death ends the meeting, instead of letting a replacement in.
  bool fixed = false;
  // Asked a few times a second while others are waited for; its error ends the meeting.
  std::function<Status()> watch;
  // How to name a rank that has not come; by its number, if empty.
  std::function<std::string(std::uint32_t)> describe;
};

// A rank's place in a comm: the control region, the scratch regions and who the others are.
// The first rank to come makes the regions; all hold them (Pool::hold), so that they stay while any
// member lives; the last to leave frees them. A comm that lost a rank takes in nobody: those who
// live leave it, and what is left without a living member is replaced. A stopped process is a
// living member: what it may still write to when it wakes is reused by nobody. One thread at a
// time.
//
// In a pool of several hosts, regions lie in the arena of the host whose rank came first, and only
// that host frees them: its last rank to leave waits up to two seconds for the others, and what
// stays all the same is freed when that host makes its next comm.
class Membership {
 public:
  // See Comm::join for the errors. `flags` are kMember..., for the others to see.
  static Result<std::unique_ptr<Membership>> join(Pool& pool, const CommConfig& config,
                                                  std::uint64_t flags);
  // The same under another name than the comm's. Errors also: the watch's; peer_dead or revoked
  // when a member of a fixed meeting died or gave up.
  static Result<std::unique_ptr<Membership>> meet(Pool& pool, const CommConfig& config,
                                                  std::uint64_t flags, Meeting meeting);
  ~Membership();  // leaves
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  const ControlHeader& header() const { return header_; }
  const ControlTuning& tuning() const { return tuning_; }
  // Another for every comm that is made; sequences of inlined blocks begin here.
  std::uint64_t first_sequence() const { return control_.generation | 1; }
  // What CommConfig::group comes to in a comm of `size` ranks: 0 where it does not divide them.
  static std::uint32_t group_of(const CommConfig& config, std::uint32_t size) {
    return config.group > 1 && config.group < size && size % config.group == 0 ? config.group : 0;
  }
  ControlLayout layout() const {
    return {header_.size, tuning_.inline_lines, tuning_.pair_inline_lines};
  }
  // What this rank said when it joined.
  std::uint64_t flags_of(std::uint32_t rank) const { return read_member(rank).flags; }
  std::uint64_t flags() const { return flags_; }
  std::uint32_t rank() const { return meeting_.rank; }
  std::uint32_t size() const { return header_.size; }
  penstock_address scratch(std::uint32_t payload_device) const {
    return scratch_.address[payload_device];
  }
  // Pool offset of a byte of the control region (see ControlLayout).
  penstock_address control(std::uint64_t offset) const { return control_.address + offset; }

  // "rank 2 (pid 4711)".
  std::string describe(std::uint32_t rank) const;
  // "rank 2 (pid 4711), which is stopped (state T)", or as above.
  std::string describe_with_state(std::uint32_t rank) const;
  // The first rank that is proven dead, or kNoRank. Costs system calls.
  std::uint32_t find_dead() const;
  // The first rank that gave up, or kNoRank, with its reason.
  std::uint32_t find_aborted(Status* reason) const;
  // Whether the rank left the comm, in peace or giving up the meeting.
  bool has_left(std::uint32_t rank) const;
  // Letter of proc(5), see Platform::process_state.
  char process_state(std::uint32_t rank) const;
  // Forgets the place without leaving it: for a forked child, whose parent keeps it.
  void release() { joined_ = false; }
  // Publishes that this rank gives up. Idempotent: the first reason stays.
  void announce_abort(const Status& reason, std::uint32_t culprit);
  // Gives the place up. The regions are touched no more; describe() goes on. Idempotent. This rank
  // may be waited for elsewhere: what the destructor waits two seconds for is waited for here an
  // eighth of the deadline at most, and left to those who come later.
  void leave();
  bool joined() const { return joined_; }

  // Signs of life (LifeLine). This rank waits for `rank` (kNoRank: for nobody in particular).
  void beat(std::uint32_t waits_for);
  std::uint64_t beats_of(std::uint32_t rank, std::uint32_t* waits_for) const;

  // Agrees with the other survivors on who is left, and meets them. This place stays joined.
  // Errors: revoked when the others went on without this rank; deadline_exceeded; no_space.
  Result<std::unique_ptr<Membership>> shrink(const CommConfig& config);
  // revoked, naming them, if the survivors have gone on without this rank.
  Status voted_out() const;
  // Sixty-four bits of their own for everything that comes out of this comm.
  std::uint64_t offspring(char kind, std::uint64_t which, std::uint64_t detail) const;

 private:
  Membership(Pool& pool, const CommConfig& config, std::uint64_t flags, Meeting meeting)
      : pool_(pool),
        name_(config.name),
        meeting_(std::move(meeting)),
        newcomer_(config.newcomer),
        timeout_ms_(config.timeout_ms),
        flags_(flags) {}

  enum class Attempt { met, retry };
  // Meeting: rendezvous.cpp.
  Result<Attempt> take_place(const CommConfig& config);
  Result<Attempt> try_meet(const CommConfig& config, std::uint64_t deadline_ns);
  Result<Attempt> find_growing();
  Result<bool> adopt_existing();
  bool read_header();
  struct Presence {
    std::uint32_t present = 0;
    std::uint32_t living = 0;
    bool lost = false;  // one died or gave up the meeting
    bool left = false;  // one left after they had met
  };
  Presence survey_members();
  bool all_came() const;
  Status enter();
  Result<Attempt> enter_or_retry();
  Result<Attempt> wait_for_all(std::uint64_t deadline_ns);
  Result<Attempt> look_after();
  bool withdraw();
  std::string absent(const char* when) const;
  Status timed_out() const;
  // What it was told for the meeting need not live longer.
  void forget_meeting() { meeting_.watch = nullptr, meeting_.describe = nullptr; }
  Status still_in_use(std::uint32_t timeout_ms) const;

  // Regions and lines: membership.cpp.
  Status make_regions(const CommConfig& config);
  Status make_regions(const CommConfig& config, std::uint32_t most_inline_lines);
  Status allocate_control(const CommConfig& config, std::uint32_t most_inline_lines);
  Status place_scratch(const CommConfig& config, std::uint32_t payload_devices,
                       ControlHeader* header, ControlScratch* scratch);
  void format(const ControlHeader& header, const ControlScratch& scratch);
  void free_regions();
  void sweep();
  bool is_abandoned(const RegionInfo& info);
  bool others_live(bool here) const;  // here: on this host
  void mark(MemberState state);
  void write_state(std::uint32_t rank, ControlMember member, MemberState state) const;
  bool is_dead(std::uint32_t rank, const ControlMember& member) const;
  void leave_within(std::uint32_t patience_ms);
  bool is_in_place() const;
  void give_back();
  void let_go();
  ControlMember read_member(std::uint32_t rank) const;
  ControlMember identity(std::uint32_t rank) const;
  ProcessIdentity process_of(const ControlMember& member) const;
  Liveness liveness(const ControlMember& member) const;
  std::byte* at(std::uint64_t offset, std::uint64_t bytes) const;
  std::string scratch_name(std::uint32_t payload_device) const;
  LifeLayout life() const { return {layout().bytes(), header_.size}; }
  std::uint32_t pool_hosts() const;
  LifeHeader life_header() const;
  LifeLine read_life(std::uint32_t rank) const;

  // Shrinking: shrink.cpp.
  Result<Agreement> regroup() const;
  std::uint64_t wait_for_survivors(Agreement& agreement, std::uint64_t deadline_ns);
  std::uint64_t overdue(std::uint64_t waited_ns) const;
  bool gone(std::uint32_t rank) const;
  Status come_together(const CommConfig& config, std::uint64_t deadline_ns);
  std::uint64_t survivors_of(const Membership& next, const Status& came,
                             std::uint64_t members) const;
  Status without_me(std::uint64_t members) const;

  Pool& pool_;
  std::string name_;
  Meeting meeting_;
  bool newcomer_;
  std::uint32_t timeout_ms_;
  Region control_;
  std::uint64_t flags_;
  ControlHeader header_{};
  ControlTuning tuning_{};
  ControlScratch scratch_{};
  std::vector<Region> scratch_regions_;
  std::vector<ControlMember> known_;  // by rank, as of the last look; for describe() after leaving
  std::string blocker_;               // why the last attempt had to be repeated
  bool joined_ = false;
  bool met_ = false;  // all ranks had come
  bool aborted_ = false;
};

}  // namespace penstock
#endif
