#include <cstring>

#include "penstock/engine/accept.h"
#include "penstock/engine/conformance_rig.h"

namespace penstock::conformance {

Snapshot::Snapshot(Rig& rig) : rig_(rig) {
  for (std::uint64_t i = 0; i < kArea; ++i)
    rig.memory()[i] = static_cast<std::byte>(i * 37 + i / 256);
  std::memset(rig.memory() + kFence, 0, PENSTOCK_CACHE_LINE);
  rig.publish(0, kArea);
  bytes_.assign(rig.memory(), rig.memory() + kArea);
}

bool Snapshot::holds() {
  rig_.observe(0, kArea);
  return std::memcmp(rig_.memory(), bytes_.data(), kArea) == 0;
}

void expect_outcome(Rig& rig, const penstock_descriptor& d, std::uint32_t status,
                    std::uint32_t field, std::uint64_t detail, const char* what, Tally* tally) {
  const Result<penstock_completion> done = rig.run(d);
  if (!done.ok()) return tally->fail(fmt::format("{}: {}", what, done.status().message()));
  const penstock_completion& c = done.value();
  tally->expect(
      c.status == status && c.field == field && c.detail == detail,
      fmt::format("{}: expected {}, got {}", what,
                  describe(penstock_completion{0, status, field, detail, 0}), describe(c)));
}

namespace {

std::vector<penstock_descriptor> sound_descriptors(Rig& rig) {
  std::vector<penstock_descriptor> out;
  out.push_back(make_descriptor(PENSTOCK_OP_NOP, 0, 0));
  penstock_descriptor copy = make_descriptor(PENSTOCK_OP_COPY, 1, 2);
  copy.count = 100;
  copy.src[0] = rig.address(1);
  copy.dst[0] = rig.address(1024);
  copy.dst[1] = rig.address(2048);
  out.push_back(copy);
  penstock_descriptor reduce = make_descriptor(PENSTOCK_OP_REDUCE, 3, 1);
  reduce.type = reduce.out_type = PENSTOCK_F32;
  reduce.redop = PENSTOCK_PREMUL_SUM;
  reduce.scale = 0x40000000;
  reduce.count = 16;
  for (std::uint32_t s = 0; s < 3; ++s) reduce.src[s] = rig.address(s * 128);
  reduce.dst[0] = rig.address(4096);
  out.push_back(reduce);
  penstock_descriptor weighted = reduce;
  weighted.redop = PENSTOCK_AVG;
  weighted.flags = PENSTOCK_FLAG_WEIGHTS;
  weighted.scale = rig.address(8192);
  out.push_back(weighted);
  penstock_descriptor step = reduce;
  step.opcode = PENSTOCK_OP_OUTER_STEP;
  step.type = PENSTOCK_INT8;
  step.block = 32;
  step.redop = PENSTOCK_AVG;
  step.n_dst = 2;
  step.dst[1] = rig.address(5120);
  out.push_back(step);
  if (rig.pool() != nullptr) {
    penstock_descriptor signal = make_descriptor(PENSTOCK_OP_SIGNAL, 1, 1);
    signal.dst[0] = rig.address(kFence);
    signal.src[0] = 3;
    out.push_back(signal);
    penstock_descriptor wait = make_descriptor(PENSTOCK_OP_WAIT, 2, 0);
    wait.src[0] = rig.address(kFence);
    wait.timeout_ms = 10;
    out.push_back(wait);
    penstock_descriptor barrier = make_descriptor(PENSTOCK_OP_BARRIER, 2, 1);
    barrier.count = 3;
    barrier.dst[0] = barrier.src[0] = rig.address(kFence);
    barrier.timeout_ms = 10;
    out.push_back(barrier);
  }
  penstock_descriptor select = make_descriptor(PENSTOCK_OP_SELECT, 3, 1);
  select.flags = PENSTOCK_FLAG_COMMIT;
  select.count = 1;
  for (std::uint32_t s = 0; s < 3; ++s) select.src[s] = rig.address(8192 + s * 64);
  select.dst[0] = rig.address(12288);
  out.push_back(select);
  penstock_descriptor update = make_descriptor(PENSTOCK_OP_UPDATE, 2, 0);
  update.count = 1;
  update.src[0] = rig.address(8192);
  update.src[1] = rig.address(8256);
  out.push_back(update);
  return out;
}

// Runs a record that the check refuses, and compares what comes back.
void refuse_one(Rig& rig, const penstock_descriptor& d, Tally* tally) {
  std::uint32_t field = 0;
  std::uint64_t detail = 0;
  const std::uint32_t status = penstock_descriptor_check(&d, &field, &detail);
  if (status == PENSTOCK_OK || tally->failed()) return;
  const Result<penstock_completion> done = rig.run(d);
  if (!done.ok()) return tally->fail(done.status().message());
  penstock_completion expected{d.cookie, status, field, detail, 0};
  const penstock_completion& c = done.value();
  tally->expect(
      c.cookie == d.cookie && c.status == status && c.field == field && c.detail == detail,
      fmt::format("{}: expected {}, got {}", penstock_opcode_name(d.opcode), describe(expected),
                  describe(c)));
  tally->expect(!rig.engine().accepts(d).ok(), "accepts() takes a malformed descriptor");
}

}  // namespace

void check_malformed(Rig& rig, std::vector<ConformanceRow>* rows) {
  Snapshot snapshot(rig);
  Tally one, random;
  std::uint64_t state = rig.options().seed;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  };
  const std::vector<penstock_descriptor> sound = sound_descriptors(rig);
  for (const penstock_descriptor& base : sound) {
    for (std::size_t at = 0; at < sizeof(base); ++at) {
      if (at >= offsetof(penstock_descriptor, cookie) && at < offsetof(penstock_descriptor, count))
        continue;
      for (const unsigned char value : {0x00, 0x01, 0x07, 0x80, 0xff}) {
        penstock_descriptor d = base;
        d.cookie = at;
        reinterpret_cast<unsigned char*>(&d)[at] = value;
        refuse_one(rig, d, &one);
      }
    }
  }
  for (int i = 0; i < (rig.options().quick ? 200 : 3000); ++i) {
    penstock_descriptor d = sound[next() % sound.size()];
    d.cookie = next();
    for (std::uint64_t changes = 1 + next() % 4; changes > 0; --changes)
      reinterpret_cast<unsigned char*>(&d)[next() % sizeof(d)] = static_cast<unsigned char>(next());
    refuse_one(rig, d, &random);
  }
  one.expect(snapshot.holds(), "memory was touched");
  rows->push_back(one.row("malformed, one byte"));
  rows->push_back(random.row("malformed, random"));
}

namespace {

void check_overlap(Rig& rig, std::vector<ConformanceRow>* rows) {
  Snapshot snapshot(rig);
  Tally tally;
  penstock_descriptor copy = make_descriptor(PENSTOCK_OP_COPY, 1, 1);
  copy.count = 64;
  copy.src[0] = rig.address(256);
  for (const std::uint64_t at : {193, 255, 257, 319}) {
    copy.dst[0] = rig.address(at);
    expect_outcome(rig, copy, PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, copy.dst[0],
                   "COPY onto a part of its source", &tally);
  }
  if (rig.capabilities().max_destinations > 1) {
    penstock_descriptor twice = copy;
    twice.n_dst = 2;
    twice.dst[0] = rig.address(1024);
    twice.dst[1] = rig.address(1087);
    expect_outcome(rig, twice, PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, twice.dst[1],
                   "COPY to overlapping destinations", &tally);
  }
  if (has(rig, PENSTOCK_OP_REDUCE) && (rig.capabilities().redops[PENSTOCK_INT32] & 1) != 0) {
    penstock_descriptor reduce = make_descriptor(PENSTOCK_OP_REDUCE, 2, 1);
    reduce.type = reduce.out_type = PENSTOCK_INT32;
    reduce.count = 16;
    reduce.src[0] = rig.address(512);
    reduce.src[1] = rig.address(640);
    reduce.dst[0] = rig.address(644);
    expect_outcome(rig, reduce, PENSTOCK_INVALID_ARGUMENT, PENSTOCK_FIELD_DST, reduce.dst[0],
                   "REDUCE onto a part of a source", &tally);
  }
  tally.expect(snapshot.holds(), "a refused descriptor touched memory");
  // Side by side is no overlap.
  for (const std::uint64_t at : {192, 320}) {
    copy.dst[0] = rig.address(at);
    expect_outcome(rig, copy, PENSTOCK_OK, PENSTOCK_FIELD_NONE, 0, "COPY beside its source",
                   &tally);
    std::memcpy(snapshot.expected() + at, snapshot.expected() + 256, 64);
  }
  tally.expect(snapshot.holds(), "COPY beside its source: wrong bytes");
  rows->push_back(tally.row("overlap"));
}

// Windows of a queue: [0, 4096) to read and write, [4096, 8192) to read.
void check_windows(Rig& rig, std::vector<ConformanceRow>* rows) {
  if (rig.pool() == nullptr) {
    rows->push_back(unsupported_row("windows", "", "without a pool there are no windows"));
    return;
  }
  Snapshot snapshot(rig);
  Tally tally;
  QueueConfig config;
  config.depth = 2;
  config.windows = {{rig.address(0), 4096, true, true}, {rig.address(4096), 4096, true, false}};
  Result<std::unique_ptr<Queue>> queue = Queue::create(rig.pool(), config);
  if (!queue.ok()) {
    tally.fail(queue.status().message());
    return rows->push_back(tally.row("windows"));
  }
  struct Try {
    std::uint64_t src, dst;
    std::uint32_t status, field;
  };
  constexpr std::uint32_t kOut = PENSTOCK_OUT_OF_RANGE;
  for (const Try& t :
       {Try{0, 4032, PENSTOCK_OK, 0}, Try{8128, 0, PENSTOCK_OK, 0},
        Try{0, 4033, kOut, PENSTOCK_FIELD_DST}, Try{0, 4096, kOut, PENSTOCK_FIELD_DST},
        Try{8129, 0, kOut, PENSTOCK_FIELD_SRC}, Try{8192, 0, kOut, PENSTOCK_FIELD_SRC},
        Try{0, 12288, kOut, PENSTOCK_FIELD_DST}}) {
    penstock_descriptor d = make_descriptor(PENSTOCK_OP_COPY, 1, 1);
    d.count = 64;
    d.src[0] = rig.address(t.src);
    d.dst[0] = rig.address(t.dst);
    penstock_completion c{};
    bool done = queue.value()->submit(d);
    const std::uint64_t deadline = rig.now_ns() + 1'000'000ull * rig.options().timeout_ms;
    while (done && !(done = queue.value()->poll(&c)) && rig.now_ns() < deadline) {
      rig.engine().advance(*queue.value());
      done = true;
    }
    const std::uint64_t detail = t.field == 0                    ? 0
                                 : t.field == PENSTOCK_FIELD_SRC ? d.src[0]
                                                                 : d.dst[0];
    tally.expect(
        done && c.status == t.status && c.field == t.field && c.detail == detail,
        fmt::format("64 bytes from {} to {}: expected {} (field {}), got {}", t.src, t.dst,
                    penstock_status_name(t.status), penstock_field_name(t.field), describe(c)));
    if (t.status == PENSTOCK_OK)
      std::memcpy(snapshot.expected() + t.dst, snapshot.expected() + t.src, 64);
  }
  tally.expect(snapshot.holds(), "memory is not what the accepted copies leave");
  rows->push_back(tally.row("windows"));
}

}  // namespace

void check_addresses(Rig& rig, std::vector<ConformanceRow>* rows) {
  if (!has(rig, PENSTOCK_OP_COPY)) {
    rows->push_back(unsupported_row("overlap", "", "the engine has no COPY"));
    rows->push_back(unsupported_row("windows", "", "the engine has no COPY"));
    return;
  }
  check_overlap(rig, rows);
  check_windows(rig, rows);
}

}  // namespace penstock::conformance
