// A lane: the ranks, fences and scratch memory over which plans run one after another. A comm has
// one lane for its collectives and one for every pair of ranks and direction that talks, so that a
// wait in one never holds back another.
//
// A plan is executed in one of two ways, which may differ from rank to rank and from call to call,
// because what a rank does to the pool is the same:
//   queued   every step becomes a descriptor on the lane's queue, which the engine works off;
//   direct   the steps are run in place, with the engine's own kernels, when the engine would do
//            its work in this thread anyway (Engine::direct_kernels), and always for plans of
//            inlined blocks.
//
// Agreement about the call: every signal of a rank that works directly and every inlined block
// carries a note (call_note.h), which is compared before the first byte of another rank is used. A
// rank whose engine works off a queue signals without notes, because the engine gives the signals.
//
// Buffers in the pool: a rank whose buffer lies in the pool offers it to the others (OfferLine)
// instead of copying it into the blocks that mirror it, and stays in the call until all that read
// there are done. Who has read there asks, before the call counts, whether anybody gave up
// meanwhile (a rank that did has taken its buffer back). If the tuning says so, a rank that folds
// also writes the result straight into the receive buffers that others offer, who then have nothing
// to copy. Only if every rank of the lane works directly.
#ifndef PENSTOCK_COMM_LANE_H_
#define PENSTOCK_COMM_LANE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "penstock/comm/comm.h"
#include "penstock/comm/device_stage.h"
#include "penstock/comm/plan.h"
#include "penstock/engine/host_engine.h"
#include "penstock/memory/fence.h"
#include "penstock/memory/inline_block.h"

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
};

// Why a lane stopped: the status, and the comm rank that it is about (kNoRank if none).
struct LaneFailure {
  Status status;
  std::uint32_t culprit;
};

struct LaneConfig {
  std::vector<std::uint32_t> ranks;       // comm rank of each participant
  std::uint32_t self = 0;                 // this process among them
  std::vector<penstock_address> fences;   // per participant: its fence's line, then its offers'
  std::vector<penstock_address> scratch;  // per payload device; two halves each
  std::vector<penstock_address> inlined;  // per participant; kInlineSlots each; 0: it writes none
  std::uint32_t inline_lines = 0;         // of a slot
  // Where sequences of inlined blocks begin: what an earlier comm left in the same memory, or in a
  // cache, is never taken for this one's.
  std::uint64_t first_sequence = 1;
  std::uint64_t half_bytes = 0;
  std::uint64_t rank_bytes = 0;
  bool may_expose = false;  // every participant works directly
  // The engine that goes on in place of one that failed in this way, or why there is none.
  std::function<Result<std::shared_ptr<Engine>>(const Engine& lost, const Status& why)> replace;
  // Whether a call of so many bytes that read buffers where they are may count: a rank that gave up
  // meanwhile has taken its buffer back. Needed if may_expose.
  std::function<LaneFailure(std::uint64_t bytes)> confirm;
  std::uint32_t group = 0;  // of the topology
  Tuning tuning;
  LocalTuning local;
  QueueConfig queue;
};

class Lane {
 public:
  static Result<std::unique_ptr<Lane>> make(Pool& pool, std::shared_ptr<Engine> engine,
                                            PlanCache& plans, CommCounters& counters,
                                            LaneConfig config);
  ~Lane();

  // The key of the passes of a call, but for part_bytes, and the bytes of one part of the whole
  // call. `call.root` is a participant of this lane.
  PlanKey key_of(const Call& call) const;
  static std::uint64_t part_bytes(const Call& call);
  // What one pass of this call takes of each part.
  Result<std::uint64_t> bytes_per_pass(const Call& call);

  // Appends a checked call.
  struct Pending;
  Result<std::shared_ptr<Request>> start(const Call& call);
  bool idle() const { return pending_.empty(); }
  // The short way of a blocking call, while nothing is on its way. Ready is a call that was made
  // lately, buffers included, or that get_ready was told of; `repeat` makes it: null when it is
  // done, else its request. `spin`: polls for a while, else yields between polls.
  bool is_idle_and_direct() const { return direct_ != nullptr && pending_.empty() && !failed(); }
  bool is_ready(const Call& call) const;
  Status get_ready(const Call& call);
  std::shared_ptr<Request> repeat(const Call& call, bool spin);

  // Does what can be done without waiting. False: nothing moved. After a failure the lane takes no
  // more calls; every pending request ends with that status.
  bool progress();
  bool failed() const { return !failure_.status.ok(); }
  const LaneFailure& failure() const { return failure_; }
  // Ends everything with this status and empties the queue.
  void fail(const Status& status, std::uint32_t culprit);

  // Comm rank that the oldest unfinished step waits for, or kNoRank.
  std::uint32_t waiting_for() const;
  // To be called now and then while nothing moves: fails the lane when the deadline of the wait is
  // over, or when another rank turns out to be in a different call.
  void look_around(std::uint64_t now_ns);

 private:
  Lane(Pool& pool, std::shared_ptr<Engine> engine, PlanCache& plans, CommCounters& counters,
       LaneConfig config);
  Status open();

  // What repeated calls have in common.
  struct Prepared;
  struct Push;
  Result<std::shared_ptr<const Prepared>*> prepare(const Call& call);
  static bool may_be_pushed(const Block& block);
  static std::vector<Push> pushes_of(const Plan& plan, std::uint32_t self);

  void rewind(Pending& pending);
  Status begin_pass(Pending& pending);
  void end_pass(Pending& pending);
  void retire();
  std::uint64_t note(const Pending& pending) const;
  bool find_disagreement(const Pending& pending);
  void look_at_deadline(const Pending& pending, std::uint64_t now_ns);
  void disagree(std::uint32_t participant, std::uint64_t mine, std::uint64_t theirs);

  // ---- direct ----
  static std::size_t done_slot(const Call& call);
  bool is_direct(const Pending& pending) const;
  bool run_direct(Pending& pending);
  std::uint64_t reuse_value(const Pending& pending, std::uint32_t participant) const;
  void look_ahead(const Prepared& prepared);
  bool run_step(Pending& pending, const Step& step);
  bool pass_fence(Pending& pending, std::uint32_t participant, std::uint64_t value, bool noted);
  bool check_note(Pending& pending, std::uint32_t participant, std::uint64_t theirs);
  bool take_offer(const Pending& pending, std::uint32_t participant, std::uint64_t theirs);
  bool is_worth_exposing(const Prepared& prepared) const;
  void offer_buffers(Pending& pending);
  void give_due_signal();
  void run_signal(Pending& pending, const Step& step);
  bool run_copy(Pending& pending, const Step& step);
  struct Destinations {
    void* place[PENSTOCK_MAX_DESTINATIONS];
    std::uint32_t count = 0;
    std::uint32_t pushed = 0;  // of them
  };
  bool gather_sources(Pending& pending, const Step& step, const void** from);
  void add_pushes(const Pending& pending, const Slice& block, Destinations* to);
  bool run_reduce(Pending& pending, const Step& step);
  void fold(const Call& call, const Step& step, const void* const* from, const Destinations& to,
            bool stream) const;
  bool is_drained(Pending& pending);
  bool is_confirmed(const Pending& pending);
  bool read_inlined(Pending& pending, const Slice& slice, void* out, std::uint64_t* taken);
  void write_inlined(const Pending& pending, const Slice& slice, const void* data);
  const Kernels& kernels() const { return direct_ != nullptr ? *direct_ : *own_kernels_; }
  InlineBlock inline_block(std::uint32_t writer, std::uint64_t offset) const;
  std::byte* place_of(const Pending& pending, const Push& push) const;
  bool push_copy(const Pending& pending, const Slice& block, const void* from);
  void push_rest(const Pending& pending, const Slice& block, const void* from, std::uint32_t done);
  bool is_pushed(const Pending& pending, const Step& step) const;
  bool is_own_mirror(const Pending& pending, const Slice& slice) const;
  std::byte* pointer_of(const Pending& pending, const Slice& slice) const;
  void observe(const Slice& slice, const void* data) const;
  void publish(const Slice& slice, const void* data) const;
  void* staging(std::uint32_t source, std::uint64_t bytes);

  // ---- buffers in a device's memory ----
  static void look_for_devices(Pending& pending);
  bool engine_reaches(const Pending& pending) const;
  bool stage_pass(Pending& pending);
  Status stage_parts(Pending& pending);
  Status stage_whole(Pending& pending);
  bool stage_for_host(Pending& pending);
  void end_staged_pass(Pending& pending);
  bool end_whole(Pending& pending);

  // ---- queued ----
  bool run_queued(Pending& pending);
  bool collect();
  bool submit_step(Pending& pending, const Step& step);
  bool submit_wait(Pending& pending, const Step& step);
  bool submit_signal(Pending& pending, const Step& step);
  bool submit_copy(Pending& pending, const Step& step);
  bool submit_reduce(Pending& pending, const Step& step);
  penstock_descriptor reduce_of(const Pending& pending, const Step& step) const;
  penstock_address address_of(const Pending& pending, const Slice& slice) const;
  bool submit(Pending& pending, penstock_descriptor& descriptor, std::uint32_t waits_for);
  void count_traffic(const Step& step);

  // ---- queued: what the engine cannot do, and what becomes of one that fails ----
  std::optional<bool> without_engine(Pending& pending, const Step& step,
                                     const penstock_descriptor& descriptor);
  bool run_on_host(Pending& pending, const Step& step);
  bool is_private(const Pending& pending, const Slice& slice) const;
  bool needs_staging(const Pending& pending, const Step& step) const;
  bool submit_staged(Pending& pending, const Step& step);
  bool reserve_staging(std::uint64_t bytes);
  bool finish_staged(Pending& pending, const Step& step);
  void engine_failed(const Status& why);
  Status go_on_with(std::shared_ptr<Engine> engine);
  std::string what_cannot_be_repeated() const;
  void empty_queue();

  Pool& pool_;
  std::shared_ptr<Engine> engine_;
  PlanCache& plans_;
  CommCounters& counters_;
  const LaneConfig config_;
  const bool software_;  // coherence
  const bool may_push_;
  const Kernels* direct_;                          // the engine's, or null: queued
  std::unique_ptr<const Kernels> own_kernels_;     // for inlined blocks beside a queued engine
  std::unique_ptr<Queue> queue_;                   // null while nothing was queued
  std::vector<std::shared_ptr<Pending>> pending_;  // oldest first
  std::size_t filling_ = 0;                        // index of the first not fully submitted
  // Calls that are done, for the next one of the same kind: by hash of the call.
  static constexpr std::size_t kDone = 32;
  std::array<std::shared_ptr<Pending>, kDone> done_;
  static constexpr std::size_t kPrepared = 64;
  std::array<std::shared_ptr<const Prepared>, kPrepared> prepared_;  // by hash
  LaneFailure failure_{Status(), 0xffffffff};

  // Where things are in this process.
  std::vector<Fence> fences_;
  std::vector<std::byte*> offers_;
  std::vector<std::byte*> scratch_;
  std::vector<std::byte*> inlined_;

  // Fence values. base_: at the start of the pass being run or submitted; reuse_: at the end of
  // the pass before the previous one; promised_: a value that the fence is known to have reached
  // (direct), or that a submitted WAIT ensures for what is submitted after it.
  std::vector<std::uint64_t> base_;
  std::vector<std::uint64_t> reuse_;
  // For inlined blocks, whose memory comes round later: ends of passes by pass % kInlineSlots, and
  // of the last pass that was not inlined and the one before it.
  std::array<std::vector<std::uint64_t>, 4> ends_;
  std::uint64_t bulk_pass_ = 0;  // plus one; 0: none yet
  std::vector<std::uint64_t> bulk_end_;
  std::vector<std::uint64_t> older_bulk_end_;
  std::vector<std::uint64_t> promised_;
  std::uint64_t pass_ = 0;
  // The last signal was counted and not given: in a row of passes in which everybody hears from
  // everybody, what a rank writes next tells as much. Given before anything else happens.
  bool signal_due_ = false;
  // Direct: the pass in which the participant's note was compared, plus one, and what it offers.
  std::vector<std::uint64_t> noted_;
  std::vector<std::byte*> offered_send_;
  std::vector<std::byte*> offered_recv_;
  std::vector<std::uint64_t> drained_at_;  // fences when the pass that exposed buffers last is over
  std::vector<std::uint64_t> taken_;       // by source of the step being run: lines read so far
  std::vector<std::byte> staging_;
  std::unique_ptr<DeviceStage> stage_;  // of passes of this thread
  std::uint32_t blocked_on_;            // participant, or kNoRank
  std::uint64_t blocked_since_ns_ = 0;

  // Address lists of REDUCEs with more than 8 sources; one per descriptor that can be in flight.
  std::vector<std::array<penstock_address, PENSTOCK_MAX_SOURCES>> lists_;
  std::size_t next_list_ = 0;
  // What the queue holds, oldest first: to be given to another engine if this one fails.
  std::deque<penstock_descriptor> in_flight_;
  // Pool memory for one REDUCE of an engine that does not reach this process's memory.
  Region staging_region_;
  bool staged_ = false;  // the step being submitted is under way there
  bool told_ = false;    // that the host does steps of this engine
};

}  // namespace penstock
#endif
