// Agreement among hosts that share nothing but a pool: who holds a role, who is a member, which
// record of several is the one.
//
// A history of decisions, numbered from 1. Each decision is the whole state (80 bytes that the user
// defines), so the newest one says everything, and only the last `depth` are kept. Decision n + 1
// may be proposed only by a participant that knows decision n. A participant is whoever has blocks
// of its own in the space: a host of the pool, or a rank of a comm. Processes of one host that
// propose as the same participant exclude each other by the pool's lock (open(Pool&, ...) does
// that); whoever opens a space of its own sees to it that each participant is one thread at a time.
//
// The protocol is Disk Paxos (Gafni and Lamport, Distributed Computing 16(1), 2003) with one disk,
// the pool, which is lost as a whole or not at all: each participant writes blocks of its own and
// reads those of all others. No two participants ever decide differently, however slow, stopped or
// restarted they are; a decision comes about once one participant runs alone for long enough,
// which random pauses see to. Model: tests/models/agreement.pml.
//
//   1. write my block: promised = a ballot above all that I have seen
//   2. read the others' blocks; one with a higher promise: start again with a higher ballot
//   3. take the value with the highest accepted ballot among all blocks, or mine if there is none;
//      write my block: accepted = my ballot, with that value
//   4. read the others' blocks again; one with a higher promise: start again
//   5. it is decided; write my block: decided
//
// Memory needs no coherence: a block is written by one participant, published before others' blocks
// are observed, and kept in two copies that are written in turn (agreement_block.h), so that a
// writer that stops half way leaves a readable one.
//
// Recycling: decision n + depth takes the blocks of decision n. Who meets a block with a later
// number stops (out_of_range), just as if it had met a higher promise, so that nothing else is
// decided late. With depth 2 or more the newest decision is always found: its author gives its
// block up only for a number that implies a newer one.
#ifndef PENSTOCK_MEMORY_AGREEMENT_H_
#define PENSTOCK_MEMORY_AGREEMENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <type_traits>

#include "penstock/memory/agreement_space.h"
#include "penstock/memory/pool.h"
#include "penstock/memory/shared_memory.h"

namespace penstock {

inline constexpr std::size_t kAgreementValueBytes = 80;

using AgreementValue = std::array<std::byte, kAgreementValueBytes>;

// A record as a value and back. Bytes behind the record are zero.
template <typename Record>
AgreementValue to_agreement_value(const Record& record) {
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) <= kAgreementValueBytes);
  AgreementValue value{};
  std::memcpy(value.data(), &record, sizeof record);
  return value;
}
template <typename Record>
Record from_agreement_value(const AgreementValue& value) {
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) <= kAgreementValueBytes);
  Record record;
  std::memcpy(&record, value.data(), sizeof record);
  return record;
}

struct Decision {
  std::uint64_t number = 0;  // 0: nothing was decided yet
  AgreementValue value{};
};

// Makes the space empty. By whoever makes the region, before any participant knows of it.
void format_agreement(Platform& platform, Coherence coherence, const AgreementSpace& space);

// One thread at a time. Copies share nothing but the space.
class Agreement {
 public:
  // invalid_argument for numbers out of bounds, a space that is null or not line-aligned.
  static Result<Agreement> open(Platform& platform, Coherence coherence,
                                const AgreementSpace& space, std::uint32_t participant);
  // History `which` of the pool's own (0..kPoolAgreements - 1), as the pool's host. Every call
  // holds the pool's lock for that history meanwhile. The pool outlives it.
  static Result<Agreement> open(Pool& pool, std::uint32_t which);

  std::uint32_t participant() const { return participant_; }
  std::uint32_t participants() const { return space_.participants; }
  Platform& platform() const { return *platform_; }

  // Proposes `value` as decision `number` and returns what is decided, mine or another's. Errors:
  // invalid_argument for number 0, or when number - 1 is not known to be decided; out_of_range when
  // the blocks were recycled (latest() has the present state); deadline_exceeded when others kept
  // interfering, after which the value may still be decided by whoever proposes next; corrupt when
  // a block is unreadable for good.
  Result<Decision> propose(std::uint64_t number, const AgreementValue& value,
                           std::uint64_t deadline_ns);

  // Decision `number` if a participant has recorded it, nothing if none has. Proposes nothing.
  // out_of_range and corrupt as above.
  Result<std::optional<Decision>> decided(std::uint64_t number, std::uint64_t deadline_ns);

  // The newest recorded decision; number 0 if there is none. It never goes back. deadline_exceeded
  // when the history moves on faster than it can be read.
  Result<Decision> latest(std::uint64_t deadline_ns);

  // Moves the state on: `next` makes a new value from the newest decision, or nothing if that one
  // will do. Repeats as often as another's proposal wins; returns the decision that did. A value
  // that two participants may propose alike needs no mark of its author, any other does.
  using Next = std::function<std::optional<AgreementValue>(const Decision& newest)>;
  Result<Decision> update(const Next& next, std::uint64_t deadline_ns);

 private:
  friend class MembershipView;  // its beat lines are written under the same lock
  Agreement(Platform& platform, Coherence coherence, const AgreementSpace& space,
            std::uint32_t participant)
      : platform_(&platform),
        memory_(platform, coherence),
        space_(space),
        participant_(participant) {}

  // Keeps other processes of this host away; null where the caller does.
  Result<std::unique_ptr<Pool::Lock>> exclude(std::uint64_t deadline_ns) const;
  Result<Decision> propose_excluded(std::uint64_t number, const AgreementValue& value,
                                    std::uint64_t deadline_ns);
  Result<Decision> latest_excluded(std::uint64_t deadline_ns);

  Platform* platform_;
  SharedMemory memory_;
  AgreementSpace space_;
  std::uint32_t participant_;
  Pool* pool_ = nullptr;
  std::uint32_t lock_ = 0;
  Decision known_;  // the newest that this object has seen
};

}  // namespace penstock
#endif
