#include "penstock/memory/agreement_ballot.h"

#include <algorithm>

namespace penstock {

Ballot::State Ballot::step() {
  PENSTOCK_CHECK(state_ == State::running || state_ == State::lost, "a step after the end");
  state_ = State::running;
  switch (phase_) {
    case Phase::recall:
      return recall();
    case Phase::promise:
      promise();
      break;
    case Phase::accept:
      accept();
      break;
    case Phase::hear_promises:
    case Phase::hear_accepts:
      return hear();
    case Phase::record:
      own_.decided = 1;
      write();
      return finish(State::decided);
  }
  return state_;
}

// What this participant has promised and accepted stands in its block, and nowhere else: another
// process of its host may have run before, and died at any place.
Ballot::State Ballot::recall() {
  next_ = participant_;
  const auto record = blocks_.load(slot_, participant_);
  if (!record) return finish(++unreadable_ < kUnreadableTurns ? State::running : State::damaged);
  unreadable_ = 0;
  own_ = *record;
  if (own_.number > number_) return finish(State::recycled);
  if (own_.number == number_ && own_.decided == 1) return finish(State::decided);
  if (own_.number < number_) {
    // The sequence number goes on; everything else is of an earlier decision.
    own_ = AgreementRecord{};
    own_.sequence = record->sequence;
    own_.number = number_;
  }
  highest_seen_ = own_.promised;
  phase_ = Phase::promise;
  return state_;
}

void Ballot::promise() {
  // Ballots of different participants differ, because their remainders do.
  const std::uint64_t participants = blocks_.space().participants;
  ballot_ = (highest_seen_ / participants + 1) * participants + participant_;
  ++attempts_;
  own_.promised = ballot_;
  write();
  accepted_ = own_.accepted;
  accepted_value_ = own_.value;
  next_ = 0;
  phase_ = Phase::hear_promises;
}

void Ballot::accept() {
  own_.accepted = ballot_;
  own_.value = accepted_ > 0 ? accepted_value_ : proposed_;
  write();
  next_ = 0;
  phase_ = Phase::hear_accepts;
}

// Reads the next of the others' blocks; after the last one, goes on.
Ballot::State Ballot::hear() {
  if (next_ == participant_) ++next_;
  if (next_ < blocks_.space().participants) {
    const auto record = blocks_.load(slot_, next_);
    if (!record) return finish(++unreadable_ < kUnreadableTurns ? State::running : State::damaged);
    unreadable_ = 0;
    if (record->number > number_) return finish(State::recycled);
    if (record->number == number_) {
      if (record->decided == 1) {
        own_.value = record->value;
        return finish(State::decided);
      }
      highest_seen_ = std::max(highest_seen_, record->promised);
      if (record->promised > ballot_) {
        phase_ = Phase::promise;
        return finish(State::lost);
      }
      if (record->accepted > accepted_) {
        accepted_ = record->accepted;
        accepted_value_ = record->value;
      }
    }
    ++next_;
    if (next_ == participant_) ++next_;
  }
  if (next_ >= blocks_.space().participants) {
    phase_ = phase_ == Phase::hear_promises ? Phase::accept : Phase::record;
  }
  return state_;
}

// The full fence: everything up to here is seen before anything after is read, also where the
// memory is coherent.
void Ballot::write() {
  blocks_.store(slot_, participant_, &own_);
  platform_->full_fence();
}

}  // namespace penstock
