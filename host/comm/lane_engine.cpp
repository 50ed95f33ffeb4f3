// What a queue's engine does not reach or do, and what becomes of an engine that fails.
#include <algorithm>
#include <cstring>

#include "penstock/base/log.h"
#include "penstock/comm/control.h"
#include "penstock/comm/lane_pending.h"

namespace penstock {

// Nothing if the engine takes the descriptor; otherwise whether the step is over without it. An
// engine that is lost has been replaced, or has failed the lane, when this returns.
std::optional<bool> Lane::without_engine(Pending& pending, const Step& step,
                                         const penstock_descriptor& descriptor) {
  const Status accepted = engine_->accepts(descriptor);
  if (accepted.ok()) return std::nullopt;
  if (accepted.code() == Code::io_error) {
    engine_failed(accepted);
    return false;
  }
  if (!told_ && engine_->capabilities().host_memory) {
    log::warn("{}; the host does that instead", accepted.message());
    told_ = true;
  }
  return run_on_host(pending, step);
}

// In its place among the others: what comes before it is done.
bool Lane::run_on_host(Pending& pending, const Step& step) {
  if (queue_->in_flight() > 0) return false;
  if (pending.is_on_device() && pending.stage == nullptr && !stage_for_host(pending)) return false;
  return run_step(pending, step);
}

bool Lane::is_private(const Pending& pending, const Slice& slice) const {
  penstock_address address = 0;
  return slice.space != Space::block &&
         !pool_.address_of(pointer_of(pending, slice), slice.bytes, &address);
}

// A list of sources stands in this process's memory, too.
bool Lane::needs_staging(const Pending& pending, const Step& step) const {
  if (engine_->capabilities().host_memory) return false;
  const auto is_out_of_reach = [&](const Slice& slice) { return is_private(pending, slice); };
  return step.src.size() > PENSTOCK_INLINE_SOURCES ||
         std::any_of(step.src.begin(), step.src.end(), is_out_of_reach) ||
         std::any_of(step.dst.begin(), step.dst.end(), is_out_of_reach);
}

// False: the pool has no room for it.
bool Lane::reserve_staging(std::uint64_t bytes) {
  if (staging_region_.bytes >= bytes) return true;
  if (staging_region_.bytes > 0) static_cast<void>(pool_.free(staging_region_));
  staging_region_ = {};
  RegionRequest request;
  request.bytes = bytes;
  Result<Region> region = pool_.allocate(request);
  if (region.ok()) {
    staging_region_ = *region;
    return true;
  }
  if (!told_) log::warn("{}; the host reduces instead", region.status().message());
  told_ = true;
  return false;
}

// A REDUCE whose private operands stand in the pool meanwhile: the list of its sources first, then
// a place for the result, then those for private sources.
bool Lane::submit_staged(Pending& pending, const Step& step) {
  if (queue_->in_flight() > 0) return false;
  penstock_descriptor descriptor = reduce_of(pending, step);
  constexpr std::uint64_t kLine = PENSTOCK_CACHE_LINE;
  constexpr std::uint64_t kListBytes = PENSTOCK_MAX_SOURCES * sizeof(penstock_address);
  const std::uint64_t bytes = step.src[0].bytes;
  const std::uint64_t place = (bytes + kLine - 1) / kLine * kLine;
  if (!reserve_staging(kListBytes + (1 + step.src.size()) * place)) {
    return run_on_host(pending, step);
  }
  const penstock_address begin = staging_region_.address;
  std::byte* memory = pool_.resolve(begin, staging_region_.bytes);
  penstock_address list[PENSTOCK_MAX_SOURCES];
  std::uint64_t next = kListBytes + place;
  for (std::size_t i = 0; i < step.src.size(); ++i) {
    list[i] = address_of(pending, step.src[i]);
    if (!is_private(pending, step.src[i])) continue;
    std::memcpy(memory + next, pointer_of(pending, step.src[i]), bytes);
    pool_.publish(memory + next, bytes);
    list[i] = begin + next;
    next += place;
  }
  if ((descriptor.flags & PENSTOCK_FLAG_SRC_LIST) != 0) {
    std::memcpy(memory, list, sizeof list);
    pool_.publish(memory, sizeof list);
    descriptor.src[0] = begin;
  } else {
    std::copy_n(list, step.src.size(), descriptor.src);
  }
  // Private destinations share one place.
  descriptor.n_dst = 0;
  bool shared = false;
  for (const Slice& slice : step.dst) {
    const bool is_here = is_private(pending, slice);
    if (!is_here || !shared) {
      descriptor.dst[descriptor.n_dst++] =
          is_here ? begin + kListBytes : address_of(pending, slice);
    }
    shared = shared || is_here;
  }
  if (const auto done = without_engine(pending, step, descriptor)) return *done;
  staged_ = submit(pending, descriptor, kNoRank);
  return false;
}

bool Lane::finish_staged(Pending& pending, const Step& step) {
  if (queue_->in_flight() > 0) return false;
  staged_ = false;
  constexpr std::uint64_t kListBytes = PENSTOCK_MAX_SOURCES * sizeof(penstock_address);
  const std::uint64_t bytes = step.src[0].bytes;
  const std::byte* result = pool_.resolve(staging_region_.address + kListBytes, bytes);
  bool observed = false;
  for (const Slice& slice : step.dst) {
    if (!is_private(pending, slice)) continue;
    if (!observed) pool_.observe(result, bytes);
    observed = true;
    std::memcpy(pointer_of(pending, slice), result, bytes);
  }
  count_traffic(step);
  return true;
}

void Lane::empty_queue() {
  queue_->cancel();
  penstock_completion completion;
  do {
    engine_->advance(*queue_);
    while (queue_->poll(&completion)) {
    }
  } while (queue_->in_flight() > 0);
}

// ---- an engine that fails ----

namespace {

struct Range {
  penstock_address begin;
  std::uint64_t bytes;
  bool overlaps(const Range& other) const {
    return begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

void add_ranges(const Pool& pool, const penstock_descriptor& d, std::vector<Range>* reads,
                std::vector<Range>* writes) {
  if (d.opcode != PENSTOCK_OP_COPY && d.opcode != PENSTOCK_OP_REDUCE) return;
  const std::uint64_t bytes =
      d.opcode == PENSTOCK_OP_COPY ? d.count : d.count * penstock_type_size(d.type);
  for (std::uint32_t i = 0; i < d.n_dst; ++i) writes->push_back({d.dst[i], bytes});
  const auto* sources = d.src;
  if ((d.flags & PENSTOCK_FLAG_SRC_LIST) != 0) {
    const std::uint64_t list_bytes = d.n_src * sizeof(penstock_address);
    sources = reinterpret_cast<const penstock_address*>(
        penstock_address_is_host(d.src[0])
            ? reinterpret_cast<const std::byte*>(penstock_address_offset(d.src[0]))
            : pool.resolve(d.src[0], list_bytes));
  }
  for (std::uint32_t i = 0; i < d.n_src; ++i) reads->push_back({sources[i], bytes});
}

}  // namespace

// What has failed may have been done in part, and what followed it may have read that. All of it is
// done again in its order, which gives the same if nothing of it writes what it or something before
// it reads. Empty: nothing does.
std::string Lane::what_cannot_be_repeated() const {
  std::vector<Range> reads, writes;
  for (const penstock_descriptor& descriptor : in_flight_) {
    writes.clear();
    add_ranges(pool_, descriptor, &reads, &writes);
    for (const Range& write : writes) {
      for (const Range& read : reads) {
        if (write.overlaps(read)) {
          return fmt::format("a {} in place cannot be done again",
                             penstock_opcode_name(descriptor.opcode));
        }
      }
    }
  }
  return "";
}

// The engine is given up. What it had and did not finish goes to the next one, if the comm's choice
// of engines has one; otherwise the lane fails.
void Lane::engine_failed(const Status& why) {
  empty_queue();
  const std::string obstacle = what_cannot_be_repeated();
  Status last = why;
  while (config_.replace != nullptr) {
    Result<std::shared_ptr<Engine>> next = config_.replace(*engine_, last);
    if (!next.ok()) break;
    if (!obstacle.empty()) {
      last = error(why.code(), "{}; {}", why.message(), obstacle);
      break;
    }
    last = go_on_with(std::move(next).value());
    if (!last.ok()) continue;
    log::warn("{}; engine {} goes on", why.message(), engine_->capabilities().name);
    return;
  }
  fail(last, kNoRank);
}

Status Lane::go_on_with(std::shared_ptr<Engine> engine) {
  queue_.reset();  // the old engine has let go of the memory when this returns
  engine_ = std::move(engine);
  told_ = false;
  PENSTOCK_ASSIGN(queue_, Queue::create(&pool_, config_.queue));
  for (const auto& pending : pending_) {
    const bool begun = pending->in_flight > 0 || pending->plan != nullptr;
    if (pending->is_on_device() && pending->stage == nullptr && begun && !engine_reaches(*pending))
      return error(Code::unsupported, "engine {} does not reach a buffer in a device's memory",
                   engine_->capabilities().name);
  }
  for (const penstock_descriptor& descriptor : in_flight_) {
    PENSTOCK_TRY(engine_->accepts(descriptor));
    PENSTOCK_CHECK(queue_->submit(descriptor), "the queue is as deep as the one before");
  }
  return {};
}

}  // namespace penstock
