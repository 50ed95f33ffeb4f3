// A lane: the ranks, fences and scratch memory over which plans run one after another. A comm has
// one lane for its collectives and one for every pair of ranks and direction that talks, each with
// a queue of its own, so that a wait in one never holds back another.
#ifndef PENSTOCK_COMM_LANE_H_
#define PENSTOCK_COMM_LANE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "penstock/comm/comm.h"
#include "penstock/comm/plan.h"

namespace penstock {

// Plans by key, bounded. Shared by the lanes of a comm. One thread at a time.
class PlanCache {
 public:
  Result<std::shared_ptr<const Plan>> get(const PlanKey& key);

 private:
  static constexpr std::size_t kMaxPlans = 256;
  struct Hash {
    std::size_t operator()(const PlanKey& key) const;
  };
  std::unordered_map<PlanKey, std::shared_ptr<const Plan>, Hash> plans_;
  PlanKey last_key_;
  std::shared_ptr<const Plan> last_;
};

struct LaneConfig {
  std::vector<std::uint32_t> ranks;       // comm rank of each participant
  std::uint32_t self = 0;                 // this process among them
  std::vector<penstock_address> fences;   // one line per participant
  std::vector<penstock_address> scratch;  // per payload device; two halves each
  std::uint64_t half_bytes = 0;
  std::uint64_t rank_bytes = 0;
  QueueConfig queue;
};

// Why a lane stopped: the status, and the comm rank that was waited for (kNoRank if none).
struct LaneFailure {
  Status status;
  std::uint32_t culprit;
};

class Lane {
 public:
  static Result<std::unique_ptr<Lane>> make(Pool& pool, Engine& engine, PlanCache& plans,
                                            CommCounters& counters, LaneConfig config);

  // The key of the passes of a call, but for part_bytes, and the bytes of one part of the whole
  // call. `call.root` is a participant of this lane.
  PlanKey key_of(const Call& call) const;
  static std::uint64_t part_bytes(const Call& call);
  // What one pass of this call takes of each part.
  Result<std::uint64_t> bytes_per_pass(const Call& call);

  // Appends a checked call. The request is done when its descriptors have completed.
  struct Pending;
  Result<std::shared_ptr<Request>> start(const Call& call);
  bool idle() const { return pending_.empty(); }

  // Submits, lets the engine work, collects. False: nothing moved. After a failure the lane takes
  // no more calls; every pending request ends with that status.
  bool progress();
  bool failed() const { return !failure_.status.ok(); }
  const LaneFailure& failure() const { return failure_; }
  // Ends everything with this status and empties the queue.
  void fail(const Status& status, std::uint32_t culprit);

  // Comm rank whose signal the oldest unfinished step waits for, or kNoRank.
  std::uint32_t waiting_for() const;

 private:
  Lane(Pool& pool, Engine& engine, PlanCache& plans, CommCounters& counters, LaneConfig config)
      : pool_(pool),
        engine_(engine),
        plans_(plans),
        counters_(counters),
        config_(std::move(config)) {}

  bool fill();
  bool collect();
  Status begin_pass(Pending& pending);
  void end_pass(Pending& pending);
  // False: the queue is full.
  bool submit_step(Pending& pending, const Step& step);
  bool submit_wait(const Step& step);
  bool submit_signal(const Step& step);
  bool submit_copy(Pending& pending, const Step& step);
  bool submit_reduce(Pending& pending, const Step& step);
  penstock_address address_of(const Pending& pending, const Slice& slice);
  bool submit(penstock_descriptor& descriptor, std::uint32_t waits_for);
  void count_traffic(const Step& step);

  Pool& pool_;
  Engine& engine_;
  PlanCache& plans_;
  CommCounters& counters_;
  LaneConfig config_;
  std::unique_ptr<Queue> queue_;
  std::deque<std::shared_ptr<Pending>> pending_;  // oldest first; all but the last are submitted
  std::size_t filling_ = 0;                       // index of the first not fully submitted
  LaneFailure failure_{Status(), 0xffffffff};

  // Fence values. base_: at the start of the pass being submitted; reuse_: at the end of the pass
  // before the previous one; promised_: the highest value that a submitted WAIT of this queue
  // ensures for what is submitted after it.
  std::vector<std::uint64_t> base_;
  std::vector<std::uint64_t> reuse_;
  std::vector<std::uint64_t> promised_;
  std::uint64_t pass_ = 0;
  PlanKey sized_for_;  // the last key that bytes_per_pass looked at, and what it found
  std::uint64_t sized_ = 0;
  // Address lists of REDUCEs with more than 8 sources; one per descriptor that can be in flight.
  std::vector<std::array<penstock_address, PENSTOCK_MAX_SOURCES>> lists_;
  std::size_t next_list_ = 0;
};

}  // namespace penstock
#endif
