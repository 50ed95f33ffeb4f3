// The implementation of Comm over a pool. What a call does is in comm.cpp, how a comm ends in
// comm_life.cpp.
#ifndef PENSTOCK_COMM_POOL_COMM_H_
#define PENSTOCK_COMM_POOL_COMM_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "penstock/comm/comm.h"
#include "penstock/comm/lane.h"
#include "penstock/comm/peer_watch.h"
#include "penstock/comm/rendezvous.h"
#include "penstock/comm/statistics.h"
#include "penstock/engine/choice.h"

namespace penstock {

class PoolComm : public Comm {
 public:
  PoolComm(Pool& pool, const CommConfig& config, std::unique_ptr<Membership> membership,
           EngineSource source, std::shared_ptr<Engine> engine)
      : pool_(pool),
        platform_(pool.platform()),
        config_(config),
        membership_(std::move(membership)),
        source_(std::move(source)),
        engine_(std::move(engine)),
        capabilities_(engine_->capabilities()),
        process_(platform_.process_generation()),
        statistics_(config.name, membership_->rank(), membership_->size()) {
    oversubscribed_ =
        config.wait == CommConfig::Wait::yield ||
        (config.wait == CommConfig::Wait::automatic && membership_->size() > platform_.cpu_count());
  }
  ~PoolComm() override {
    // A forked child has no part in the comm: it must not leave on its parent's behalf.
    if (process_ != platform_.process_generation()) membership_->release();
  }

  Status open();

  std::uint32_t rank() const override { return membership_->rank(); }
  std::uint32_t size() const override { return membership_->size(); }
  std::uint64_t epoch() const override { return membership_->header().epoch; }
  const Capabilities& engine() const override { return capabilities_; }
  CommCounters counters() const override { return counters_; }
  const Statistics& statistics() const override { return statistics_; }
  Result<std::shared_ptr<const Plan>> plan(const Call& call) override;
  Status run(const Call& call) override;
  Result<std::shared_ptr<Request>> start(const Call& call) override;
  Result<bool> test(Request& request) override;
  Status wait(Request& request) override;
  void abort(const std::string& reason) override;
  Status health() override;
  void revoke() override;
  Result<std::unique_ptr<Comm>> shrink() override;
  Result<std::unique_ptr<Comm>> grow(std::uint32_t size) override;
  Result<std::unique_ptr<Comm>> split(std::int32_t color, std::int32_t key) override;

 private:
  Status usable() const;
  Result<std::shared_ptr<Request>> begin(const Call& call);
  LaneConfig lane_config();
  Result<std::shared_ptr<Engine>> replace_engine(const Engine& lost, const Status& why);
  LaneFailure confirm(std::uint64_t bytes) const;
  Lane* open_lane_of(const Call& call, Call* lane_call) const;
  Result<Lane*> lane_of(const Call& call, Call* lane_call);
  Result<std::unique_ptr<Lane>> make_pair_lane(std::uint32_t from, std::uint32_t to);
  bool progress();
  void note_failures();
  Status wait_for_progress(const Request& request);
  void look_around(std::uint64_t now_ns);
  Status survey() { return survey(awaited(), all_awaited()); }
  Status survey(std::uint32_t first, std::uint64_t peers);
  Status look_once_more(std::uint32_t culprit);
  Status survey_now_and_then(std::uint64_t now_ns);
  void revoke(const Status& status, std::uint32_t culprit, bool heard = false);
  Status describe_failure(const LaneFailure& failure) const;
  PeerWatch& watch() const;
  std::uint32_t awaited() const;
  std::uint64_t all_awaited() const;
  std::string describe_absent(std::uint32_t rank) const;
  Result<std::unique_ptr<Comm>> on(std::unique_ptr<Membership> membership, std::string name);
  // Ranks of this comm, and perhaps newcomers, meet as `config.name`.
  Result<std::unique_ptr<Comm>> meet(const CommConfig& config, Meeting meeting);

  Pool& pool_;
  Platform& platform_;
  CommConfig config_;
  std::unique_ptr<Membership> membership_;
  EngineSource source_;  // of which engine_ is what it gave last
  std::shared_ptr<Engine> engine_;
  Capabilities capabilities_;  // of engine_
  std::uint64_t process_;
  bool oversubscribed_ = false;
  bool may_expose_ = true;  // every rank works directly
  PlanCache plans_;
  CommCounters counters_;
  Statistics statistics_;
  std::unique_ptr<Lane> collectives_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<Lane>> pairs_;
  Status revoked_;
  mutable std::unique_ptr<PeerWatch> watch_;  // made when this rank first has to wait for long
  std::uint64_t next_survey_ns_ = 0;          // of one who polls
  std::uint64_t splits_ = 0;
  std::uint64_t grown_ = 0;
  std::string regroup_failure_;  // why ranks did not meet: those of other parts do not know
};

}  // namespace penstock
#endif
