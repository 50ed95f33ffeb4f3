#include "penstock/comm/device_stage.h"

#include <algorithm>
#include <utility>

namespace penstock {

Status DeviceStage::open(Side* side, const std::byte* buffer) {
  if (side->memory == nullptr || side->opened == side->memory) return {};
  side->copies.reset();
  for (auto& slot : side->slot) slot.reset();
  std::fill(std::begin(side->bytes), std::end(side->bytes), 0);
  side->opened = nullptr;
  PENSTOCK_ASSIGN(side->copies, side->memory->open(buffer));
  side->opened = side->memory;
  return {};
}

Status DeviceStage::begin_call(const Call& call, DeviceMemory* send, DeviceMemory* recv,
                               std::uint32_t self, std::uint64_t total) {
  sides_[0].memory = send;
  sides_[0].buffer = const_cast<std::byte*>(static_cast<const std::byte*>(call.send));
  sides_[1].memory = recv;
  sides_[1].buffer = static_cast<std::byte*>(call.recv);
  for (Slot& slot : slots_) slot = Slot();
  self_ = self;
  total_ = total;
  for (Side& side : sides_) PENSTOCK_TRY(open(&side, side.buffer));
  return {};
}

// Every slice of a buffer that this rank's steps name: what they write, or what they read without
// having written just that before. A plan names the same slice again and again.
std::vector<DeviceStage::Range> DeviceStage::ranges(const Pass& pass, bool written) const {
  if (pass.plan == nullptr) {
    std::vector<Range> all;
    for (const Space space : {Space::send, Space::recv}) {
      const Side& s = side(space);
      if (s.memory != nullptr && s.whole > 0 && (space == Space::recv || !written))
        all.push_back({space, 0, 0, s.whole});
    }
    return all;
  }
  std::vector<Range> found;
  std::vector<Slice> seen, wrote;
  const auto has = [](const std::vector<Slice>& slices, const Slice& slice) {
    return std::find(slices.begin(), slices.end(), slice) != slices.end();
  };
  const auto take = [&](const Slice& slice) {
    if (slice.bytes == 0 || has(seen, slice)) return;
    seen.push_back(slice);
    found.push_back({slice.space, slice.index * pass.bytes + slice.offset,
                     slice.index * total_ + pass.done + slice.offset, slice.bytes});
  };
  const auto staged = [this](const Slice& slice) {
    return slice.space != Space::block && side(slice.space).memory != nullptr;
  };
  for (const Step& step : pass.plan->ranks[self_]) {
    for (const Slice& slice : step.src)
      if (staged(slice) && !written && !has(wrote, slice)) take(slice);
    for (const Slice& slice : step.dst) {
      if (!staged(slice)) continue;
      wrote.push_back(slice);
      if (written) take(slice);
    }
  }
  return found;
}

std::uint64_t DeviceStage::slot_bytes(const Side& side, const Pass& pass) const {
  const std::uint64_t bytes =
      pass.plan == nullptr ? side.whole : pass.plan->ranks.size() * pass.bytes;
  return std::max<std::uint64_t>(bytes, 1);
}

Status DeviceStage::begin_whole(std::uint64_t send_bytes, std::uint64_t recv_bytes) {
  sides_[0].whole = send_bytes;
  sides_[1].whole = recv_bytes;
  const Pass all{nullptr, 0, total_};
  PENSTOCK_TRY(fetch(all, current_));
  for (std::size_t s = 0; s < sides_.size(); ++s)
    if (sides_[s].memory != nullptr)
      PENSTOCK_TRY(sides_[s].copies->wait_reads(slots_[current_].read[s]));
  return {};
}

// Memory for every part of the pass. What still goes out of the slot is waited for.
Status DeviceStage::reserve(const Pass& pass, int slot) {
  for (std::size_t s = 0; s < sides_.size(); ++s) {
    Side& side = sides_[s];
    if (side.memory == nullptr) continue;
    PENSTOCK_TRY(side.copies->wait_writes(slots_[slot].written[s]));
    const std::uint64_t bytes = slot_bytes(side, pass);
    if (side.bytes[slot] >= bytes) continue;
    side.bytes[slot] = 0;
    side.slot[slot].reset();
    PENSTOCK_ASSIGN(side.slot[slot], side.copies->allocate(bytes));
    side.bytes[slot] = bytes;
  }
  return {};
}

Status DeviceStage::fetch(const Pass& pass, int slot) {
  PENSTOCK_TRY(reserve(pass, slot));
  for (const Range& range : ranges(pass, false)) {
    Side& from = side(range.space);
    PENSTOCK_TRY(from.copies->read(from.slot[slot].get() + range.at, from.buffer + range.device,
                                   range.bytes));
  }
  for (std::size_t s = 0; s < sides_.size(); ++s) {
    if (sides_[s].memory == nullptr) continue;
    PENSTOCK_ASSIGN(slots_[slot].read[s], sides_[s].copies->mark_reads());
  }
  slots_[slot].pass = pass;
  return {};
}

Status DeviceStage::begin_pass(const Pass& pass, const Pass* next) {
  current_ = (current_ + 1) % kSlots;
  if (slots_[current_].pass != pass) PENSTOCK_TRY(fetch(pass, current_));
  if (next != nullptr) PENSTOCK_TRY(fetch(*next, (current_ + 1) % kSlots));
  for (std::size_t s = 0; s < sides_.size(); ++s)
    if (sides_[s].memory != nullptr)
      PENSTOCK_TRY(sides_[s].copies->wait_reads(slots_[current_].read[s]));
  return {};
}

Status DeviceStage::end_pass() {
  Slot& slot = slots_[current_];
  for (const Range& range : ranges(slot.pass, true)) {
    Side& to = side(range.space);
    PENSTOCK_TRY(to.copies->write(to.buffer + range.device, to.slot[current_].get() + range.at,
                                  range.bytes));
  }
  for (std::size_t s = 0; s < sides_.size(); ++s) {
    if (sides_[s].memory == nullptr) continue;
    PENSTOCK_ASSIGN(slot.written[s], sides_[s].copies->mark_writes());
  }
  return {};
}

Status DeviceStage::end_call() {
  for (std::size_t s = 0; s < sides_.size(); ++s) {
    if (sides_[s].memory == nullptr) continue;
    for (Slot& slot : slots_) {
      PENSTOCK_TRY(sides_[s].copies->wait_reads(slot.read[s]));
      PENSTOCK_TRY(sides_[s].copies->wait_writes(slot.written[s]));
    }
  }
  for (Slot& slot : slots_) slot = Slot();
  return {};
}

std::byte* DeviceStage::place(const Slice& slice, std::uint64_t done) const {
  const Side& of = side(slice.space);
  if (of.memory == nullptr) return nullptr;
  const Slot& slot = slots_[current_];
  return of.slot[current_].get() + slice.index * slot.pass.bytes + (done - slot.pass.done) +
         slice.offset;
}

}  // namespace penstock
