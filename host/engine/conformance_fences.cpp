// Fences through an engine: SIGNAL, WAIT, BARRIER, deadlines and cancellation.
#include <cstring>
#include <tuple>
#include <utility>

#include "penstock/engine/conformance_rig.h"
#include "penstock/memory/fence.h"

namespace penstock::conformance {
namespace {

penstock_descriptor wait_for(Rig& rig, std::uint64_t value, std::uint32_t timeout_ms) {
  penstock_descriptor d = make_descriptor(PENSTOCK_OP_WAIT, 2, 0);
  d.src[0] = rig.address(kFence);
  d.src[1] = value;
  d.timeout_ms = timeout_ms;
  return d;
}
penstock_descriptor copy_of_line(Rig& rig, std::uint64_t from, std::uint64_t to) {
  penstock_descriptor d = make_descriptor(PENSTOCK_OP_COPY, 1, 1);
  d.count = 64;
  d.src[0] = rig.address(from);
  d.dst[0] = rig.address(to);
  return d;
}
// Gives the engine 20 ms to do what it must not do.
bool stays_silent(Rig& rig) {
  penstock_completion c;
  const std::uint64_t until = rig.now_ns() + 20'000'000;
  while (rig.now_ns() < until) {
    rig.engine().advance(rig.queue());
    if (rig.queue().poll(&c)) return false;
    Platform::host().pause();
  }
  return true;
}

void check_signal(Rig& rig, Fence& fence, std::vector<ConformanceRow>* rows) {
  Tally tally;
  penstock_descriptor d = make_descriptor(PENSTOCK_OP_SIGNAL, 1, 1);
  d.dst[0] = rig.address(kFence);
  for (const auto& [value, after] : {std::pair<std::uint64_t, std::uint64_t>{5, 5},
                                     {4, 5},  // never back
                                     {5, 5},
                                     {1ull << 40, 1ull << 40}}) {
    d.src[0] = value;
    expect_outcome(rig, d, PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0, "SIGNAL", &tally);
    tally.expect(fence.load() == after,
                 fmt::format("SIGNAL {}: the fence is at {}, not {}", value, fence.load(), after));
  }
  rows->push_back(tally.row("SIGNAL"));
}

void check_wait(Rig& rig, Fence& fence, std::vector<ConformanceRow>* rows) {
  Tally tally;
  const std::uint64_t now = fence.load();
  for (const std::uint64_t value : {std::uint64_t{0}, now - 1, now})
    expect_outcome(rig, wait_for(rig, value, 0), PENSTOCK_OK, PENSTOCK_FIELD_NONE, now,
                   "WAIT for what is there", &tally);
  // What follows is held back, and goes on with the signal.
  Snapshot snapshot(rig);
  tally.expect(rig.queue().submit(wait_for(rig, 7, 0)), "submit");
  tally.expect(rig.queue().submit(copy_of_line(rig, 0, 1024)), "submit");
  tally.expect(stays_silent(rig), "a WAIT that is not satisfied completed");
  tally.expect(snapshot.holds(), "what follows a WAIT was executed before it");
  fence.signal(7);
  for (const std::uint64_t detail : {7, 0}) {
    const Result<penstock_completion> done = rig.next();
    tally.expect(
        done.ok() && done.value().status == PENSTOCK_OK && done.value().detail == detail,
        "after the signal: " + (done.ok() ? describe(done.value()) : done.status().message()));
  }
  rig.observe(1024, 64);
  tally.expect(std::memcmp(rig.memory() + 1024, snapshot.expected(), 64) == 0,
               "COPY after WAIT: wrong bytes");
  rows->push_back(tally.row("WAIT"));

  Tally deadline;
  const std::uint64_t began = rig.now_ns();
  expect_outcome(rig, wait_for(rig, 1000, 30), PENSTOCK_DEADLINE_EXCEEDED, PENSTOCK_FIELD_NONE, 7,
                 "WAIT with a deadline", &deadline);
  const std::uint64_t took_ms = (rig.now_ns() - began) / 1'000'000;
  deadline.expect(took_ms >= 29, fmt::format("a deadline of 30 ms came after {} ms", took_ms));
  // The queue goes on after it.
  expect_outcome(rig, copy_of_line(rig, 64, 2048), PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0,
                 "COPY after a deadline", &deadline);
  rows->push_back(deadline.row("WAIT deadline"));
}

void check_cancel(Rig& rig, std::vector<ConformanceRow>* rows) {
  Tally tally;
  Snapshot snapshot(rig);
  const penstock_descriptor blocked[] = {wait_for(rig, 1ull << 50, 0), copy_of_line(rig, 0, 1024),
                                         make_descriptor(PENSTOCK_OP_NOP, 0, 0)};
  for (penstock_descriptor d : blocked) tally.expect(rig.queue().submit(d), "submit");
  rig.engine().advance(rig.queue());
  rig.queue().cancel();
  for (int i = 0; i < 3; ++i) {
    const Result<penstock_completion> done = rig.next();
    tally.expect(done.ok() && done.value().status == PENSTOCK_CANCELLED,
                 done.ok() ? describe(done.value()) : done.status().message());
  }
  rig.queue().reset_cancel();
  tally.expect(snapshot.holds(), "a cancelled COPY was executed");
  expect_outcome(rig, copy_of_line(rig, 0, 1024), PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0,
                 "COPY after a cancelled queue was drained", &tally);
  rows->push_back(tally.row("cancel"));
}

}  // namespace

void check_fences(Rig& rig, std::vector<ConformanceRow>* rows) {
  if (has(rig, PENSTOCK_OP_NOP)) {
    Tally tally;
    expect_outcome(rig, make_descriptor(PENSTOCK_OP_NOP, 0, 0), PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0,
                   "NOP", &tally);
    rows->push_back(tally.row("NOP"));
  } else {
    rows->push_back(unsupported_row("NOP", "", "the engine has no NOP"));
  }
  const bool able =
      has(rig, PENSTOCK_OP_SIGNAL) && has(rig, PENSTOCK_OP_WAIT) && has(rig, PENSTOCK_OP_COPY);
  if (rig.pool() == nullptr || !able) {
    const char* reason = able ? "fences live in a pool, and none was given"
                              : "the engine does not have all of SIGNAL, WAIT and COPY";
    for (const char* operation : {"SIGNAL", "WAIT", "WAIT deadline", "cancel"})
      rows->push_back(unsupported_row(operation, "", reason));
    return;
  }
  { const Snapshot zeroes_the_fence(rig); }
  Fence fence(*rig.pool(), rig.memory() + kFence);
  check_signal(rig, fence, rows);
  check_wait(rig, fence, rows);
  check_cancel(rig, rows);
}

namespace {

constexpr std::uint64_t kLine = PENSTOCK_CACHE_LINE;

// The fences of a barrier of up to 64 ranks, all at 0.
class Ranks {
 public:
  explicit Ranks(Rig& rig) : rig_(rig) {
    std::memset(rig.memory() + kBarrier, 0, PENSTOCK_MAX_BARRIER * kLine);
    rig.publish(kBarrier, PENSTOCK_MAX_BARRIER * kLine);
  }
  Fence fence(std::uint64_t rank) {
    return Fence(*rig_.pool(), rig_.memory() + kBarrier + rank * kLine);
  }
  penstock_descriptor barrier(std::uint64_t ranks, std::uint64_t own, std::uint64_t value,
                              std::uint32_t timeout_ms = 0) {
    penstock_descriptor d = make_descriptor(PENSTOCK_OP_BARRIER, 2, 1);
    d.count = ranks;
    d.dst[0] = rig_.address(kBarrier + own * kLine);
    d.src[0] = rig_.address(kBarrier);
    d.src[1] = value;
    d.timeout_ms = timeout_ms;
    return d;
  }

 private:
  Rig& rig_;
};

// The own fence rises first, what follows is held back until the last of the others is there.
void barrier_of(Rig& rig, std::uint64_t n, Tally* tally) {
  Snapshot snapshot(rig);
  Ranks ranks(rig);
  const std::uint64_t own = n / 2, value = 5 + n;
  tally->expect(rig.queue().submit(ranks.barrier(n, own, value)), "submit");
  tally->expect(rig.queue().submit(copy_of_line(rig, 0, 1024)), "submit");
  const std::uint64_t deadline = rig.now_ns() + 1'000'000ull * rig.options().timeout_ms;
  while (!ranks.fence(own).reached(value) && rig.now_ns() < deadline)
    rig.engine().advance(rig.queue());
  tally->expect(ranks.fence(own).load() == value, fmt::format("BARRIER of {}: no signal", n));
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t rank = (own + 1 + i) % n;
    if (rank == own) continue;
    if (i + 2 >= n) {
      tally->expect(stays_silent(rig), fmt::format("BARRIER of {}: before the last rank", n));
      tally->expect(snapshot.holds(), "what follows a BARRIER was executed before it");
    }
    ranks.fence(rank).signal(value + rank % 2);
  }
  for (int i = 0; i < 2; ++i) {
    const Result<penstock_completion> done = rig.next();
    tally->expect(done.ok() && done.value().status == PENSTOCK_OK && done.value().detail == 0,
                  fmt::format("BARRIER of {}: {}", n,
                              done.ok() ? describe(done.value()) : done.status().message()));
  }
  rig.observe(1024, 64);
  tally->expect(std::memcmp(rig.memory() + 1024, snapshot.expected(), 64) == 0,
                "COPY after BARRIER: wrong bytes");
}

void check_barrier_deadline(Rig& rig, std::vector<ConformanceRow>* rows) {
  Tally tally;
  for (const std::uint64_t behind : {0, 2, 5}) {
    Ranks ranks(rig);
    for (const std::uint64_t rank : {0, 1, 2, 3, 5})
      if (rank != behind) ranks.fence(rank).signal(9);
    const std::uint64_t began = rig.now_ns();
    expect_outcome(rig, ranks.barrier(6, 4, 9, 30), PENSTOCK_DEADLINE_EXCEEDED, PENSTOCK_FIELD_NONE,
                   behind, "BARRIER with a deadline", &tally);
    const std::uint64_t took_ms = (rig.now_ns() - began) / 1'000'000;
    tally.expect(took_ms >= 29, fmt::format("a deadline of 30 ms came after {} ms", took_ms));
    tally.expect(ranks.fence(4).load() == 9, "a BARRIER with a deadline raised no fence");
  }
  rows->push_back(tally.row("BARRIER deadline"));
}

void check_barrier_windows(Rig& rig, Tally* tally) {
  Ranks ranks(rig);
  QueueConfig config;
  config.depth = 2;
  config.windows = {{rig.address(kBarrier), 4 * kLine, true, false},
                    {rig.address(kBarrier), kLine, true, true}};
  Result<std::unique_ptr<Queue>> queue = Queue::create(rig.pool(), config);
  if (!queue.ok()) return tally->fail(queue.status().message());
  for (const auto& [n, own, field] :
       {std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>{4, 1, PENSTOCK_FIELD_DST},
        {5, 0, PENSTOCK_FIELD_SRC},
        {5, 1, PENSTOCK_FIELD_DST}}) {
    const penstock_descriptor d = ranks.barrier(n, own, 3);
    penstock_completion c{};
    const std::uint64_t deadline = rig.now_ns() + 1'000'000ull * rig.options().timeout_ms;
    bool done = !queue.value()->submit(d);
    while (!done && rig.now_ns() < deadline) {
      rig.engine().advance(*queue.value());
      done = queue.value()->poll(&c);
    }
    tally->expect(done && c.status == PENSTOCK_OUT_OF_RANGE && c.field == field &&
                      c.detail == (field == PENSTOCK_FIELD_DST ? d.dst[0] : d.src[0]),
                  fmt::format("BARRIER of {} outside of the windows: {}", n, describe(c)));
    tally->expect(ranks.fence(own).load() == 0, "a refused BARRIER raised a fence");
  }
}

}  // namespace

void check_barrier(Rig& rig, std::vector<ConformanceRow>* rows) {
  const bool able = has(rig, PENSTOCK_OP_BARRIER) && has(rig, PENSTOCK_OP_COPY);
  if (rig.pool() == nullptr || !able) {
    const char* reason = able ? "fences live in a pool, and none was given"
                              : "the engine does not have both BARRIER and COPY";
    for (const char* operation : {"BARRIER", "BARRIER deadline", "BARRIER cancel"})
      rows->push_back(unsupported_row(operation, "", reason));
    return;
  }
  Tally tally;
  for (const std::uint64_t n : {1, 2, 3, 17, 63, 64})
    if (!rig.options().quick || n == 1 || n == 3 || n == 64) barrier_of(rig, n, &tally);
  Ranks ranks(rig);
  ranks.fence(1).signal(12);
  ranks.fence(0).signal(10);
  expect_outcome(rig, ranks.barrier(2, 1, 10), PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0,
                 "BARRIER where all are there", &tally);
  tally.expect(ranks.fence(1).load() == 12, "BARRIER set a fence back");
  // The own fence need not be one of those that are waited for.
  expect_outcome(rig, ranks.barrier(2, 9, 10), PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0,
                 "BARRIER with its own fence elsewhere", &tally);
  tally.expect(ranks.fence(9).load() == 10, "BARRIER raised no fence");
  check_barrier_windows(rig, &tally);
  rows->push_back(tally.row("BARRIER"));
  check_barrier_deadline(rig, rows);

  Tally cancel;
  penstock_descriptor blocked = ranks.barrier(2, 0, 1ull << 50);
  cancel.expect(rig.queue().submit(blocked), "submit");
  rig.engine().advance(rig.queue());
  rig.queue().cancel();
  const Result<penstock_completion> done = rig.next();
  cancel.expect(done.ok() && done.value().status == PENSTOCK_CANCELLED,
                done.ok() ? describe(done.value()) : done.status().message());
  rig.queue().reset_cancel();
  rows->push_back(cancel.row("BARRIER cancel"));
}

}  // namespace penstock::conformance
