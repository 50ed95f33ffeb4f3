#include "penstock/sim/incoherent/exercise.h"

#include <algorithm>
#include <cstring>

#include "penstock/sim/incoherent/expectation.h"

namespace penstock::sim {
namespace {

constexpr std::byte kFill{0xa5};
constexpr std::uint64_t kGuardBytes = 64;

bool is_parted(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
    case Collective::gather:
    case Collective::scatter:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return true;
    default:
      return false;
  }
}

// Elements that `rank` sends and receives.
struct Elements {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
};
Elements elements_of(const Call& call, std::uint32_t rank, std::uint64_t size) {
  const bool root = rank == call.root;
  const std::uint64_t n = call.count;
  switch (call.collective) {
    case Collective::all_reduce:
      return {n, n};
    case Collective::broadcast:
      return {root ? n : 0, n};
    case Collective::reduce:
      return {n, root ? n : 0};
    case Collective::all_gather:
      return {n, n * size};
    case Collective::reduce_scatter:
      return {n * size, n};
    case Collective::all_to_all:
      return {n * size, n * size};
    case Collective::gather:
      return {n, root ? n * size : 0};
    case Collective::scatter:
      return {root ? n * size : 0, n};
    case Collective::send_recv:
      return {call.sender ? n : 0, call.sender ? 0 : n};
    case Collective::barrier:
      break;
  }
  return {};
}

std::uint64_t draw_count(Random& random, std::uint64_t element_bytes, std::uint64_t parts) {
  switch (random.below(16)) {
    case 0:
      return 0;
    case 1:
    case 2:
    case 3:
      return 1;
    case 4:
    case 5:
    case 6:
      return 1 + random.below(static_cast<std::uint32_t>(64 / element_bytes));
    case 7:
    case 8:
    case 9:
      return 1 + random.below(static_cast<std::uint32_t>(320 / element_bytes));
    case 10:
    case 11:
      return 4096 / element_bytes / parts;
    case 12:
    case 13:  // several passes where a pass takes 4 KiB of a rank
      return 1 + random.below(static_cast<std::uint32_t>(14000 / element_bytes));
    case 14:
      return 4096 / element_bytes + random.below(3) - 1;
    default:
      return random.chance(3) ? 65536 / element_bytes / parts + 3 : 2048 / element_bytes + 3;
  }
}

}  // namespace

Collective draw_collective(Random& random) {
  return static_cast<Collective>(random.below(kCollectives));
}

CallSpec draw_call(Random& random, Collective collective, std::uint32_t ranks, std::uint64_t id) {
  static constexpr std::uint32_t kTypes[] = {PENSTOCK_INT32,  PENSTOCK_INT64, PENSTOCK_F32,
                                             PENSTOCK_F64,    PENSTOCK_UINT8, PENSTOCK_INT8,
                                             PENSTOCK_UINT32, PENSTOCK_UINT64};
  CallSpec spec;
  spec.id = id;
  spec.collective = collective;
  spec.type = kTypes[random.below(8)];
  const std::uint32_t bytes = penstock_type_size(spec.type);
  // One-byte results that are often the same could not be told from memory left as it was.
  spec.redop = random.below(PENSTOCK_AVG + 1);
  if (bytes == 1) spec.redop = PENSTOCK_SUM;
  spec.count = draw_count(random, bytes, is_parted(collective) ? ranks : 1);
  if (bytes == 1 && spec.count != 0) spec.count = std::max<std::uint64_t>(spec.count, 8);
  spec.root = random.below(ranks);
  spec.peer = (spec.root + 1 + (ranks > 1 ? random.below(ranks - 1) : 0)) % ranks;
  spec.in_place = random.chance(3) && collective != Collective::send_recv;
  return spec;
}

std::string describe(const CallSpec& spec) {
  return fmt::format("call {} ({} of {} {} {}, root {}{})", spec.id,
                     collective_name(spec.collective), spec.count, penstock_type_name(spec.type),
                     penstock_redop_name(spec.redop), spec.root, spec.in_place ? ", in place" : "");
}

CallBuffer::CallBuffer(Pool& pool, std::uint64_t bytes, std::uint32_t element_bytes, bool in_pool,
                       Random& random)
    : pool_(pool), bytes_(bytes) {
  // Off a line by some elements, at times.
  const std::uint64_t shift = random.chance(3) ? element_bytes * random.below(8) : 0;
  const std::uint64_t all = bytes + shift + 3 * kGuardBytes;
  std::byte* begin = nullptr;
  if (in_pool) {
    RegionRequest request;
    request.bytes = all;
    if (auto region = pool.allocate(request); region.ok()) {
      region_ = region.value();
      begin = pool.resolve(region_.address, region_.bytes);
      // So that a store of what a stale copy happens to hold is not lost; see cache.h.
      pool.observe(begin, region_.bytes);
    }
  }
  if (begin == nullptr) {
    own_ = std::make_unique<std::byte[]>(all + kLine);
    const auto at = reinterpret_cast<std::uintptr_t>(own_.get());
    begin = own_.get() + ((kLine - at % kLine) % kLine);
  }
  data_ = begin + kGuardBytes + shift;
  std::memset(data_ - kGuardBytes, static_cast<int>(kFill), bytes + 2 * kGuardBytes);
}

CallBuffer::~CallBuffer() {
  if (region_.bytes == 0) return;
  // Its next owner may be of the same machine but have another cache: nothing dirty may stay here.
  pool_.observe(pool_.resolve(region_.address, region_.bytes), region_.bytes);
  (void)pool_.free(region_);
}

bool CallBuffer::guards_are_whole() const {
  for (std::uint64_t i = 1; i <= kGuardBytes; ++i) {
    if (*(data_ - i) != kFill || data_[bytes_ + i - 1] != kFill) return false;
  }
  return true;
}

PreparedCall::PreparedCall(Run& run, Pool& pool, const Comm& comm, const CallSpec& spec,
                           Arrivals& arrivals, Random& own)
    : run_(run), rank_(comm.rank()), size_(comm.size()), spec_(spec), arrivals_(arrivals) {
  call_.collective = spec.collective;
  call_.count = spec.count;
  call_.type = spec.type;
  call_.redop = spec.redop;
  call_.root = spec.root;
  if (spec.collective == Collective::send_recv) {
    takes_part_ = spec.root != spec.peer && (rank_ == spec.root || rank_ == spec.peer);
    call_.sender = rank_ == spec.root;
    call_.root = call_.sender ? spec.peer : spec.root;
  }
  if (!takes_part_) return;
  if (spec.collective == Collective::barrier) {
    ++arrivals_.of_call[spec.id];
  } else {
    make_buffers(pool, own);
  }
}

std::uint64_t PreparedCall::input(std::uint32_t rank, std::uint64_t index) const {
  return run_.value(spec_.id + 1, rank, index);
}

void PreparedCall::make_buffers(Pool& pool, Random& own) {
  const std::uint32_t element = penstock_type_size(spec_.type);
  const Elements elements = elements_of(call_, rank_, size_);
  const std::uint64_t send_bytes = elements.send * element;
  const std::uint64_t recv_bytes = elements.recv * element;
  received_ = expected_result(call_, rank_, size_,
                              [this](std::uint32_t r, std::uint64_t i) { return input(r, i); });
  const std::uint64_t part = spec_.count * element * rank_;
  const bool send_inside =
      spec_.collective == Collective::all_gather || spec_.collective == Collective::gather;
  const bool recv_inside =
      spec_.collective == Collective::reduce_scatter || spec_.collective == Collective::scatter;
  const bool in_place = spec_.in_place && send_bytes > 0 && recv_bytes > 0;
  send_ = std::make_unique<CallBuffer>(
      pool, in_place ? std::max(send_bytes, recv_bytes) : send_bytes, element, own.chance(3), own);
  std::byte* send = send_->data();
  std::byte* recv = send;
  if (in_place) {
    if (send_inside) send += part;
    if (recv_inside) recv += part;
  } else {
    recv_ = std::make_unique<CallBuffer>(pool, recv_bytes, element, own.chance(3), own);
    recv = recv_->data();
  }
  for (std::uint64_t i = 0; i < elements.send; ++i) {
    store_element(spec_.type, input(rank_, i), send + i * element);
  }
  if (!in_place) sent_.assign(send, send + send_bytes);
  // What a rank does not need may be null.
  call_.send = send_bytes > 0 || own.chance(2) ? send : nullptr;
  call_.recv = recv_bytes > 0 || own.chance(2) ? recv : nullptr;
}

Status PreparedCall::verify() const {
  if (!takes_part_) return Status();
  if (spec_.collective == Collective::barrier) {
    const std::uint32_t arrived = arrivals_.of_call[spec_.id];
    if (arrived == size_) return Status();
    return error(Code::internal, "{}: it ended when {} of {} ranks had come", describe(spec_),
                 arrived, size_);
  }
  const auto* recv = static_cast<const std::byte*>(call_.recv);
  for (std::uint64_t i = 0; i < received_.size(); ++i) {
    if (recv[i] == received_[i]) continue;
    return error(Code::internal, "{}: byte {} of {} is {:#04x}, but {:#04x} is right",
                 describe(spec_), i, received_.size(), std::to_integer<int>(recv[i]),
                 std::to_integer<int>(received_[i]));
  }
  if (!sent_.empty() && std::memcmp(send_->data(), sent_.data(), sent_.size()) != 0) {
    return error(Code::internal, "{}: the send buffer was changed", describe(spec_));
  }
  if (!send_->guards_are_whole() || (recv_ && !recv_->guards_are_whole())) {
    return error(Code::internal, "{}: bytes beside a buffer were changed", describe(spec_));
  }
  return Status();
}

std::vector<CallSpec> draw_calls(Random& random, std::uint32_t count, std::uint32_t size,
                                 std::uint64_t first_id, const Collective* only) {
  std::vector<CallSpec> specs;
  for (std::uint64_t id = first_id; id < first_id + count; ++id) {
    const Collective collective = only != nullptr ? *only : draw_collective(random);
    specs.push_back(draw_call(random, collective, size, id));
  }
  return specs;
}

CommConfig draw_comm(Run& run, std::uint32_t rank, const std::string& name) {
  // The same on every rank.
  const std::uint64_t chance = run.value(1000, 0, name.size());
  CommConfig config;
  config.name = name;
  config.rank = rank;
  config.size = run.ranks();
  config.rank_bytes = chance / 4 % 4 == 0 ? 16384 : 4096;
  config.timeout_ms = 3000;
  // Every algorithm and way of moving payload at sizes that are small everywhere else.
  if (chance / 1024 % 3 != 0) {
    Random draw(chance);
    config.tuning.inline_bytes = 64 * draw.below(8);
    config.tuning.one_shot_bytes = 256 * draw.below(5);
    config.tuning.sharded_bytes = 256 * draw.below(5);
    config.tuning.chunks = 1 + draw.below(4);
    config.tuning.chunk_bytes = 128 * config.tuning.chunks * (1 + draw.below(4));
    config.local.expose_bytes = run.value(1002, rank, 0) % 1024;
  }
  // Mostly one that the comm runs in place; the one that injects no fault works off queues. Ranks
  // may differ, in some runs.
  const std::uint64_t engine = chance / 16 % 4 == 0 ? run.value(1001, rank, 0) : chance / 64;
  static constexpr const char* kEngines[] = {"simd", "simd", "scalar", "fault:simd"};
  config.engine = kEngines[engine % 4];
  return config;
}

Status make_calls(Run& run, Pool& pool, Comm& comm, const std::vector<CallSpec>& specs,
                  Arrivals& arrivals) {
  Random own(run.value(2000, comm.rank(), comm.epoch()));
  for (const CallSpec& spec : specs) {
    PreparedCall prepared(run, pool, comm, spec, arrivals, own);
    if (!prepared.takes_part()) continue;
    if (own.chance(2)) {
      PENSTOCK_TRY(comm.run(prepared.call()).with_context(describe(spec)));
    } else {
      PENSTOCK_ASSIGN(const std::shared_ptr<Request> request, comm.start(prepared.call()));
      for (std::uint32_t looks = own.below(20); looks > 0; --looks) {
        PENSTOCK_ASSIGN(const bool done, comm.test(*request));
        if (done) break;
        pool.platform().yield();
      }
      PENSTOCK_TRY(comm.wait(*request).with_context(describe(spec)));
    }
    PENSTOCK_TRY(prepared.verify());
  }
  return Status();
}

Status make_calls_overlapping(Run& run, Pool& pool, Comm& comm, const std::vector<CallSpec>& specs,
                              Arrivals& arrivals) {
  Random own(run.value(3000, comm.rank(), comm.epoch()));
  std::vector<std::unique_ptr<PreparedCall>> calls;
  std::vector<std::shared_ptr<Request>> requests;
  for (const CallSpec& spec : specs) {
    auto prepared = std::make_unique<PreparedCall>(run, pool, comm, spec, arrivals, own);
    if (!prepared->takes_part()) continue;
    PENSTOCK_ASSIGN(std::shared_ptr<Request> request, comm.start(prepared->call()));
    calls.push_back(std::move(prepared));
    requests.push_back(std::move(request));
    if (own.chance(3))
      PENSTOCK_TRY(
          comm.test(*requests[own.below(static_cast<std::uint32_t>(requests.size()))]).status());
  }
  for (std::size_t left = requests.size(); left > 0; --left) {
    const std::uint32_t at = own.below(static_cast<std::uint32_t>(left));
    PENSTOCK_TRY(comm.wait(*requests[at]));
    PENSTOCK_TRY(calls[at]->verify());
    std::swap(requests[at], requests[left - 1]);
    std::swap(calls[at], calls[left - 1]);
  }
  return Status();
}

}  // namespace penstock::sim
