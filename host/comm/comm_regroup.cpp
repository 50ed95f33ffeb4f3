// Comms that come out of a comm: what is left of it (shrink), more (grow), parts (split).
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "penstock/comm/pool_comm.h"

namespace penstock {
namespace {

// Of one rank in split; eight bytes each, so that they travel as integers.
struct SplitChoice {
  std::int64_t color;
  std::int64_t key;
};
static_assert(sizeof(SplitChoice) == 16);

}  // namespace

// A comm on a place that was taken in another way than by Comm::join.
Result<std::unique_ptr<Comm>> PoolComm::on(std::unique_ptr<Membership> membership,
                                           std::string name) {
  CommConfig config = config_;
  config.name = std::move(name);
  config.rank = membership->rank();
  config.size = membership->size();
  config.newcomer = false;
  // An engine of its own: comms may be used by different threads.
  EngineSource source = source_.from_here();
  PENSTOCK_ASSIGN(std::shared_ptr<Engine> engine, source.next());
  auto comm = std::make_unique<PoolComm>(pool_, config, std::move(membership), std::move(source),
                                         std::move(engine));
  PENSTOCK_TRY(comm->open());
  return std::unique_ptr<Comm>(std::move(comm));
}

Result<std::unique_ptr<Comm>> PoolComm::meet(const CommConfig& config, Meeting meeting) {
  auto next = Membership::meet(pool_, config, membership_->flags(), std::move(meeting));
  if (next.ok()) return on(std::move(next).value(), config.name);
  regroup_failure_ = next.status().message();
  return next.status();
}

// A rank that did not come to a meeting: perhaps because it waits for another, or for the lock
// under which ranks come, also to other meetings.
std::string PoolComm::describe_absent(std::uint32_t rank) const {
  const std::uint32_t culprit = watch().blame(rank);
  std::string who = membership_->describe_with_state(rank);
  if (culprit != rank && culprit != this->rank()) {
    return fmt::format("{}, which waits for {}", who, membership_->describe_with_state(culprit));
  }
  if (is_stopped(membership_->process_state(rank))) return who;
  for (std::uint32_t other = 0; other < size(); ++other) {
    if (other == this->rank() || !is_stopped(membership_->process_state(other))) continue;
    who +=
        fmt::format(", perhaps for a lock that {} holds", membership_->describe_with_state(other));
  }
  return who;
}

Result<std::unique_ptr<Comm>> PoolComm::shrink() {
  if (revoked_.ok()) PENSTOCK_TRY(usable());  // not in a forked child
  if (process_ != platform_.process_generation()) return usable();
  if (!membership_->joined()) return revoked_;
  revoke(error(Code::revoked, "comm '{}' is being shrunk{}{}", config_.name,
               regroup_failure_.empty() ? "" : ": ", regroup_failure_),
         kNoRank);
  auto next = membership_->shrink(config_);
  if (!next.ok()) {
    if (!membership_->joined()) revoked_ = next.status();
    return next.status();
  }
  membership_->leave();
  return on(std::move(next).value(), config_.name);
}

Result<std::unique_ptr<Comm>> PoolComm::grow(std::uint32_t size) {
  PENSTOCK_TRY(usable());
  if (size < this->size() || size > kMaxRanks) {
    return error(Code::invalid_argument,
                 "comm '{}' of {} ranks cannot grow to {}; {} to {} are possible", config_.name,
                 this->size(), size, this->size(), kMaxRanks);
  }
  if (config_.name.size() > 31) {
    return error(Code::unsupported, "comm '{}': only one whose name has 1 to 31 bytes can grow",
                 config_.name);
  }
  Meeting meeting;
  // Newcomers look for what begins so (Membership::find_growing).
  meeting.region =
      fmt::format("{}+{:04x}", config_.name, membership_->offspring('g', ++grown_, 0) & 0xffff);
  meeting.rank = rank();
  meeting.size = size;
  meeting.epoch = epoch() + 1;
  meeting.settled = this->size();
  meeting.watch = [this]() -> Status {
    watch().follow(~std::uint64_t{0} >> (64 - this->size()));
    return survey();
  };
  meeting.describe = [this](std::uint32_t place) {
    return place < this->size() ? describe_absent(place)
                                : fmt::format("rank {}, a newcomer", place);
  };
  return meet(config_, std::move(meeting));
}

// Everybody learns what everybody wants, by a collective of this comm; then each part meets.
Result<std::unique_ptr<Comm>> PoolComm::split(std::int32_t color, std::int32_t key) {
  PENSTOCK_TRY(usable());
  const SplitChoice own{color, key};
  std::vector<SplitChoice> choices(size());
  Call call;
  call.collective = Collective::all_gather;
  call.send = &own;
  call.recv = choices.data();
  call.count = 2;
  call.type = PENSTOCK_INT64;
  PENSTOCK_TRY(run(call));
  ++splits_;
  if (color < 0) return std::unique_ptr<Comm>();
  std::vector<std::pair<std::int64_t, std::uint32_t>> part;  // key and rank
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (choices[rank].color == color) part.emplace_back(choices[rank].key, rank);
  }
  std::sort(part.begin(), part.end());
  Meeting meeting;
  meeting.region = fmt::format(
      "~{:016x}", membership_->offspring('p', splits_, static_cast<std::uint64_t>(color)));
  meeting.size = static_cast<std::uint32_t>(part.size());
  while (part[meeting.rank].second != rank()) ++meeting.rank;
  std::uint64_t ranks_of_part = 0;
  for (const auto& [ignored, rank] : part) ranks_of_part |= std::uint64_t{1} << rank;
  meeting.fixed = true;
  meeting.watch = [&]() -> Status {
    watch().follow(ranks_of_part);
    return survey();
  };
  meeting.describe = [&](std::uint32_t place) { return describe_absent(part[place].second); };
  CommConfig config = config_;
  config.name = fmt::format("{}:{}", config_.name, color);
  return meet(config, std::move(meeting));
}

}  // namespace penstock
