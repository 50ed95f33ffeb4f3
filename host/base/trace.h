// Where the time goes: slices of a timeline, and sums of time by kind.
//
// A process is off until start() turns it on; then every Scope costs two readings of the clock, and
// before that one branch. Two things can be on, apart from each other:
//   events  every Scope becomes a slice. Each thread has a buffer of its own, of a fixed number of
//           events, which only that thread writes; when it is full, what comes later is dropped and
//           counted. Nothing is written to a file before the process ends (or flush()).
//   times   every Scope adds its duration to the sums of its thread (thread_times), from which the
//           statistics of a comm are made.
//
// A process writes its **part** of the timeline: FILE if it is alone, FILE.<rank> if it is one of
// several ranks; `penstock trace merge` makes one file of the parts. Both are Chrome trace JSON,
// which ui.perfetto.dev opens: ranks stand side by side as processes. The clock is CLOCK_MONOTONIC,
// which the processes of one machine share; parts of several machines are shifted against each
// other by an unknown amount.
//
// Format of a part, line by line, so that parts can be merged without being held in memory:
//   {"otherData":{"format":"penstock-trace-1","rank":R,"size":N,"os_pid":P,"events":E,"dropped":D},
//    "traceEvents":[                                                (with the line above, one line)
//   {"pid":R, ... },                                               one event per line
//   {"pid":R, ... }                                                the last has no comma
//   ]}
//
// Thread-safe, except start(), which comes before the threads that trace. A forked child is off.
#ifndef PENSTOCK_BASE_TRACE_H_
#define PENSTOCK_BASE_TRACE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "penstock/base/status.h"

namespace penstock::trace {

// What a slice is, and what its two numbers mean.
enum class Kind : std::uint8_t {
  call,    // a collective: bytes of the payload, root or peer
  pass,    // a part of a call: number of the pass, bytes of one part
  copy,    // bytes
  reduce,  // bytes of one source, sources
  wait,    // for whom: rank, value of the fence
  signal,  // value of the fence
  put,     // target rank, bytes
  get,     // source rank, bytes
};
inline constexpr std::size_t kKinds = 8;
const char* kind_name(Kind kind);

struct Config {
  std::string file;  // of the timeline; "": no events
  bool times = false;
  std::string reports;  // where report() writes: a file, "1" for standard error, "" for nowhere
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint64_t max_events = 100000;  // per thread, at least 1; an event takes 48 bytes
};

// Turns tracing on (or, with neither file nor times, off) and forgets what was recorded before.
// The part is written when the process exits. invalid_argument names the field.
Status start(const Config& config);
// From PENSTOCK_TRACE, PENSTOCK_TRACE_EVENTS and PENSTOCK_STATS. Keeps what is already on.
Status start_from_environment(std::uint32_t rank, std::uint32_t size);
// Writes the part now and again at exit, with what was added. ok when events are off; io_error
// names the file.
Status flush();

// Name of the file that a rank writes: `file` if it is alone, else file.<rank>.
std::string part_name(const std::string& file, std::uint32_t rank, std::uint32_t size);

// Adds one JSON object to what the process reports: {"rank":R,"size":N,"reports":[...]}, written
// anew with each, so that a process that is killed later has written what it had. A process keeps
// kMaxReports; what comes later is not kept. io_error names the file.
inline constexpr std::size_t kMaxReports = 256;
Status report(const std::string& json);

inline constexpr std::size_t kTimedRanks = 64;
struct Times {
  std::array<std::uint64_t, kKinds> ns{};
  std::array<std::uint64_t, kKinds> count{};
  std::array<std::uint64_t, kTimedRanks> waited_for_ns{};  // of `wait`, by its first number
};
// The sums of the calling thread since it began; 0 while times are off.
const Times& thread_times();

struct Totals {
  std::uint64_t events = 0;   // in the buffers
  std::uint64_t dropped = 0;  // because a buffer was full
};
Totals totals();

namespace detail {
inline constexpr std::uint32_t kEvents = 1;
inline constexpr std::uint32_t kTimes = 2;
inline constinit std::atomic<std::uint32_t> mode{0};
std::uint64_t now_ns();
void end(Kind kind, const char* name, std::uint64_t arg0, std::uint64_t arg1,
         std::uint64_t start_ns);
}  // namespace detail

inline bool enabled() { return detail::mode.load(std::memory_order_relaxed) != 0; }
inline bool times_enabled() {
  return (detail::mode.load(std::memory_order_relaxed) & detail::kTimes) != 0;
}

// The time from construction to destruction. `name` has static storage and is plain text without
// quotes, backslashes or control characters.
class Scope {
 public:
  Scope(Kind kind, const char* name, std::uint64_t arg0 = 0, std::uint64_t arg1 = 0) {
    if (enabled()) [[unlikely]] {
      kind_ = kind;
      name_ = name;
      arg0_ = arg0;
      arg1_ = arg1;
      start_ns_ = detail::now_ns();
    }
  }
  ~Scope() {
    if (name_ != nullptr) [[unlikely]]
      detail::end(kind_, name_, arg0_, arg1_, start_ns_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const char* name_ = nullptr;  // null: off when the scope began
  Kind kind_;
  std::uint64_t arg0_;
  std::uint64_t arg1_;
  std::uint64_t start_ns_;
};

}  // namespace penstock::trace
#endif
