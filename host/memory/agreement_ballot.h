// One participant's attempt to get a decision made, as a machine whose every step is one access to
// one block. Agreement::propose runs it; tests interleave several, step by step.
#ifndef PENSTOCK_MEMORY_AGREEMENT_BALLOT_H_
#define PENSTOCK_MEMORY_AGREEMENT_BALLOT_H_

#include <cstdint>

#include "penstock/memory/agreement_block.h"

namespace penstock {

// One thread. The steps are those in agreement.h.
class Ballot {
 public:
  enum class State {
    running,
    lost,      // to a higher ballot; the next step begins another, better after a pause
    decided,   // value() is the decision
    recycled,  // its blocks serve a later number
    damaged,   // block_at_fault() cannot be read
  };

  Ballot(Platform& platform, const AgreementBlocks& blocks, std::uint32_t participant,
         std::uint64_t number, const AgreementValue& value)
      : platform_(&platform),
        blocks_(blocks),
        slot_(blocks.slot_of(number)),
        participant_(participant),
        number_(number),
        proposed_(value) {}

  // Not after decided, recycled or damaged.
  State step();

  const AgreementValue& value() const { return own_.value; }
  std::uint32_t attempts() const { return attempts_; }
  std::uint32_t slot() const { return slot_; }
  std::uint32_t block_at_fault() const { return next_; }

 private:
  enum class Phase { recall, promise, hear_promises, accept, hear_accepts, record };

  State recall();
  void promise();
  State hear();
  void accept();
  void write();
  State finish(State state) {
    state_ = state;
    return state;
  }

  Platform* platform_;
  AgreementBlocks blocks_;
  std::uint32_t slot_;
  std::uint32_t participant_;
  std::uint64_t number_;
  AgreementValue proposed_;

  State state_ = State::running;
  Phase phase_ = Phase::recall;
  AgreementRecord own_{};
  std::uint64_t ballot_ = 0;
  std::uint64_t highest_seen_ = 0;  // ballot promised by anyone
  std::uint64_t accepted_ = 0;      // the highest ballot with a value among all blocks
  AgreementValue accepted_value_{};
  std::uint32_t next_ = 0;  // whose block is read next
  std::uint32_t unreadable_ = 0;
  std::uint32_t attempts_ = 0;
};

}  // namespace penstock
#endif
