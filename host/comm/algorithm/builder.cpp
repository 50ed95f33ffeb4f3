#include "penstock/comm/algorithm/builder.h"

#include <algorithm>
#include <utility>

#include "penstock/descriptor/address.h"
#include "penstock/memory/inline_block.h"

namespace penstock {
namespace {

constexpr std::uint64_t kLine = PENSTOCK_CACHE_LINE;

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

std::vector<Range> split(std::uint64_t bytes, std::uint32_t pieces) {
  const std::uint64_t lines = round_up(bytes) / kLine;
  std::vector<Range> ranges(pieces);
  std::uint64_t begin = 0;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const std::uint64_t length = (lines / pieces + (i < lines % pieces ? 1 : 0)) * kLine;
    const std::uint64_t end = std::min(bytes, begin + length);
    ranges[i] = {begin, end - begin};
    begin = end;
  }
  return ranges;
}

std::vector<Range> chunks(std::uint64_t bytes, const Tuning& tuning) {
  if (bytes < tuning.chunk_bytes) return split(bytes, 1);
  // At least a line each: a chunk is a block, and there are no empty ones.
  const std::uint64_t lines = round_up(bytes) / kLine;
  return split(bytes, static_cast<std::uint32_t>(std::min<std::uint64_t>(tuning.chunks, lines)));
}

PlanBuilder::PlanBuilder(const PlanKey& key, Mode mode, bool inlined)
    : mode_(mode), inlined_(inlined), plan_(std::make_shared<Plan>()) {
  const std::uint32_t n = key.topology.ranks;
  plan_->key = key;
  plan_->ranks.resize(n);
  plan_->signals.resize(n);
  plan_->half_bytes.resize(key.topology.payload_devices);
  blocks_of_.resize(n);
  written_.resize(n);
  lines_.resize(n);
  pending_.resize(n);
  has_read_.resize(n);
  has_reused_.resize(n);
  waited_.resize(std::size_t{n} * n);
}

Slice PlanBuilder::send(std::uint32_t part, Range range) {
  return {Space::send, part, range.offset, range.bytes};
}

Slice PlanBuilder::recv(std::uint32_t part, Range range) {
  return {Space::recv, part, range.offset, range.bytes};
}

Slice PlanBuilder::block(std::uint32_t index) const {
  return {Space::block, index, 0, plan_->blocks[index].bytes};
}

// Where there is a root, its blocks (or those that it reads) go round over all devices, because one
// device would be slower than the root's link. Otherwise all ranks work at once, and each keeps to
// devices of its own as long as there are enough.
std::uint32_t PlanBuilder::place(std::uint32_t writer) const {
  const std::uint32_t devices = key().topology.payload_devices;
  if (has_root(key().collective) || key().collective == Collective::send_recv) {
    return static_cast<std::uint32_t>(plan_->blocks.size() % devices);
  }
  if (devices < ranks()) return writer % devices;
  const std::uint32_t own = devices / ranks();
  return writer * own + blocks_of_[writer] % own;
}

std::uint32_t PlanBuilder::add_block(std::uint32_t writer, std::uint64_t bytes) {
  PENSTOCK_CHECK(bytes > 0, "an empty block of rank {}", writer);
  if (inlined_) {
    plan_->blocks.push_back({writer, 0, lines_[writer] * kLine, bytes, true, {}});
    lines_[writer] += inline_lines(bytes);
  } else {
    const std::uint32_t device = place(writer);
    std::uint64_t& used = plan_->half_bytes[device];
    plan_->blocks.push_back({writer, device, used, bytes, false, {}});
    used += round_up(bytes);
  }
  written_[writer] += bytes;
  ++blocks_of_[writer];
  published_.push_back(0);
  return static_cast<std::uint32_t>(plan_->blocks.size() - 1);
}

void PlanBuilder::await(std::uint32_t rank, const Slice& src) {
  if (src.space != Space::block) return;
  if (inlined_) {
    // Read, the block tells that its writer has come to this pass.
    has_read_[rank] = true;
    waited_[std::size_t{rank} * ranks() + plan_->blocks[src.index].writer] = 1;
    return;
  }
  PENSTOCK_CHECK(published_[src.index] > 0, "block {} is not published", src.index);
  wait(rank, plan_->blocks[src.index].writer, published_[src.index]);
  has_read_[rank] = true;
}

void PlanBuilder::prepare_write(std::uint32_t rank, const Slice& dst) {
  if (dst.space != Space::block) return;
  if (!inlined_) pending_[rank].push_back(dst.index);
  if (has_reused_[rank]) return;
  has_reused_[rank] = true;
  for (std::uint32_t i = 1; i < ranks(); ++i) {
    const std::uint32_t other = peer(rank, i);
    if (waited_[std::size_t{rank} * ranks() + other] > 0) continue;
    Step step;
    step.kind = StepKind::reuse;
    step.rank = other;
    add_step(rank, std::move(step));
  }
}

void PlanBuilder::copy(std::uint32_t rank, const Slice& src, const Slice& dst) {
  if (mode_ == Mode::layout) return;
  await(rank, src);
  prepare_write(rank, dst);
  if (dst.space == Space::block && src.space == Space::send) mirror(dst, src);
  Step step;
  step.kind = StepKind::copy;
  step.src = {src};
  step.dst = {dst};
  add_step(rank, std::move(step));
}

void PlanBuilder::reduce(std::uint32_t rank, std::vector<Slice> src, std::vector<Slice> dst) {
  if (mode_ == Mode::layout) return;
  PENSTOCK_CHECK(src.size() == ranks(), "{} sources for {} ranks", src.size(), ranks());
  for (std::uint32_t i = 1; i < ranks(); ++i) await(rank, src[peer(rank, i)]);
  fold(rank, std::move(src), std::move(dst), false);
}

void PlanBuilder::fold(std::uint32_t rank, std::vector<Slice> src, std::vector<Slice> dst,
                       bool combines) {
  if (mode_ == Mode::layout) return;
  for (const Slice& slice : src) await(rank, slice);
  for (const Slice& slice : dst) prepare_write(rank, slice);
  for (const Slice& slice : dst) {
    if (slice.space == Space::block && dst.front().space == Space::recv) mirror(slice, dst.front());
  }
  Step step;
  step.kind = StepKind::reduce;
  step.combines = combines;
  step.src = std::move(src);
  step.dst = std::move(dst);
  add_step(rank, std::move(step));
}

// A block that is written whole from one place mirrors it.
void PlanBuilder::mirror(const Slice& block, const Slice& of) {
  if (block.bytes == plan_->blocks[block.index].bytes) plan_->blocks[block.index].mirror = of;
}

void PlanBuilder::publish(std::uint32_t rank) {
  if (mode_ == Mode::layout || pending_[rank].empty()) return;
  signal(rank);
}

std::uint32_t PlanBuilder::signal(std::uint32_t rank) {
  const std::uint32_t value = ++plan_->signals[rank];
  for (const std::uint32_t index : pending_[rank]) published_[index] = value;
  pending_[rank].clear();
  has_read_[rank] = false;
  if (mode_ == Mode::layout) return value;
  Step step;
  step.kind = StepKind::signal;
  step.value = value;
  add_step(rank, std::move(step));
  return value;
}

void PlanBuilder::wait(std::uint32_t rank, std::uint32_t other, std::uint32_t value) {
  std::uint32_t& waited = waited_[std::size_t{rank} * ranks() + other];
  if (mode_ == Mode::layout || waited >= value) return;
  waited = value;
  Step step;
  step.kind = StepKind::wait;
  step.rank = other;
  step.value = value;
  add_step(rank, std::move(step));
}

std::shared_ptr<Plan> PlanBuilder::finish() {
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    const bool silent = plan_->signals[rank] == 0 && !plan_->ranks[rank].empty();
    if (has_read_[rank] || !pending_[rank].empty() || (silent && ranks() > 1)) signal(rank);
  }
  return std::move(plan_);
}

std::uint64_t PlanBuilder::most_on_device() const {
  return *std::max_element(plan_->half_bytes.begin(), plan_->half_bytes.end());
}

std::uint64_t PlanBuilder::most_lines() const {
  return *std::max_element(lines_.begin(), lines_.end());
}

std::uint64_t PlanBuilder::most_written() const {
  return *std::max_element(written_.begin(), written_.end());
}

}  // namespace penstock
