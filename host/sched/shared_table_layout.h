// What a shared table is in a pool: a **board**, which stays, and a **reign** for every time that
// somebody took over the binder's role. Every line has one writer.
//
//   board   BoardHeader (4 KiB) | program | agreement (the binder's role) |
//           a fence line for each scheduler | requests of each scheduler, a ring
//   reign   ReignHeader (4 KiB) | log fence | checkpoint fence | log, a ring | two checkpoints
//
// Requests are written by their scheduler, in order of its own sequence numbers, which nobody ever
// begins anew: a scheduler in the place of a dead one continues. A reign is written by its binder
// alone, in a region that it made itself, so that a binder that was stopped, lost the role and
// wakes up can write nowhere else.
//
// The log is the truth: a record for each request that was handled, with the outcome. Record n
// stands at n % log. A checkpoint is the table and what every scheduler has to know of its own
// requests as they are after record `position`; they are written in turn, and checkpoint number n
// stands at n % 2.
#ifndef PENSTOCK_SCHED_SHARED_TABLE_LAYOUT_H_
#define PENSTOCK_SCHED_SHARED_TABLE_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "penstock/base/checksum.h"
#include "penstock/descriptor/node_table.h"
#include "penstock/memory/agreement_space.h"

namespace penstock {

inline constexpr std::uint64_t kBoardMagic = 0x6472616f62747350;  // "Pstboard"
inline constexpr std::uint64_t kReignMagic = 0x6e67696572747350;  // "Pstreign"
inline constexpr std::uint64_t kSharedHeaderBytes = 4096;
inline constexpr std::uint32_t kBinderAgreementDepth = 2;

struct BoardHeader {
  std::uint64_t magic = kBoardMagic;
  std::uint64_t bytes = 0;
  std::uint32_t schedulers = 0;
  std::uint32_t binders = 0;
  std::uint32_t ring = 0;  // requests of a scheduler that can be under way
  std::uint32_t log = 0;   // records that a reign keeps
  std::uint32_t role_ms = 0;
  std::uint32_t reserved = 0;
  std::uint64_t table_bytes = 0;
  char table_name[48] = {};
  std::uint32_t reserved2 = 0;
  std::uint32_t checksum = 0;  // CRC-32C of what stands before
};

struct ReignHeader {
  std::uint64_t magic = kReignMagic;
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;     // of the reign's region, so that an old header says nothing
  std::uint64_t from_epoch = 0;     // the reign that it continues; 0: it is the first
  std::uint64_t from_position = 0;  // the last record of that one which counts
  std::uint32_t reserved = 0;
  std::uint32_t checksum = 0;
};

enum class RequestKind : std::uint32_t {
  place = 1,
  release = 2,  // what a place did on this row with this GPU mask
};

struct SharedRequest {
  std::uint64_t sequence = 0;
  std::uint64_t cookie = 0;  // the scheduler's own
  std::uint64_t seen = 0;    // the log position that it decided on
  std::int32_t row = -1;     // place: -1 leaves the choice to the binder
  RequestKind kind = RequestKind::place;
  std::uint32_t gpu_mask = 0;  // release
  std::uint32_t checksum = 0;  // over all, with this as 0
  std::uint64_t reserved[3] = {};
  penstock_task task{};
};

enum class OutcomeStatus : std::uint32_t {
  done = 1,
  conflict = 2,  // the row does not pass the filters any more; nothing changed
  refused = 3,   // malformed, or a cell would leave its bounds; nothing changed
  no_node = 4,   // the binder was to choose, and no row passed the filters
};

struct SharedOutcome {
  std::uint64_t sequence = 0;
  std::uint64_t cookie = 0;
  OutcomeStatus status = OutcomeStatus::refused;
  RequestKind kind = RequestKind::place;
  std::int32_t row = -1;
  std::uint32_t gpu_mask = 0;  // the GPUs that were taken
};

struct LogRecord {
  std::uint64_t position = 0;
  std::uint64_t epoch = 0;
  SharedOutcome outcome;
  std::uint32_t scheduler = 0;
  std::uint32_t checksum = 0;
  std::uint64_t reserved = 0;
  penstock_task task{};
};

struct CheckpointHeader {
  std::uint64_t number = 0;
  std::uint64_t position = 0;
  std::uint64_t epoch = 0;
  std::uint32_t reserved = 0;
  std::uint32_t checksum = 0;  // of the whole checkpoint with this as 0
};

static_assert(sizeof(BoardHeader) == 104 && sizeof(ReignHeader) == 48);
static_assert(sizeof(SharedRequest) == 64 + 1024 && sizeof(LogRecord) == 64 + 1024);
static_assert(sizeof(SharedOutcome) == 32 && sizeof(CheckpointHeader) == 32);
inline constexpr std::uint64_t kLogRecordBytes = 17 * 64;

// The CRC-32C of a record whose `checksum` counts as 0.
template <typename Record>
std::uint32_t checksum_of(const Record& record) {
  Record copy = record;
  copy.checksum = 0;
  return crc32c(&copy, sizeof copy);
}

// Where things stand; offsets from the region's start.
struct BoardLayout {
  explicit BoardLayout(const BoardHeader& header);
  std::uint64_t program, agreement, fences, requests, bytes;
  std::uint64_t fence(std::uint32_t scheduler) const { return fences + scheduler * 64; }
  std::uint64_t request(std::uint32_t scheduler, std::uint64_t sequence) const {
    return requests + (std::uint64_t{scheduler} * ring + sequence % ring) * sizeof(SharedRequest);
  }
  std::uint64_t ring;
};

struct ReignLayout {
  explicit ReignLayout(const BoardHeader& header);
  std::uint64_t log_fence, checkpoint_fence, log, checkpoints, bytes;
  std::uint64_t record(std::uint64_t position) const {
    return log + position % log_records * kLogRecordBytes;
  }
  std::uint64_t checkpoint(std::uint64_t number) const {
    return checkpoints + number % 2 * checkpoint_bytes;
  }
  std::uint64_t log_records, checkpoint_bytes;
};

}  // namespace penstock
#endif
