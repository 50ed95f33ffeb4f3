#include "penstock/drivers/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/descriptor/descriptor.h"

namespace penstock::cuda {
namespace {

// Elements of a chunk are a multiple of it: whole records of block-scaled int8, and whole bytes of
// the widest packs.
constexpr std::uint64_t kChunk = 64;
constexpr std::uint64_t kAlign = 64;

std::uint64_t offset_of(const Operand& operand, std::uint64_t first) {
  return penstock_operand_bytes(operand.type, operand.block, first);
}

}  // namespace

Staging::~Staging() {
  for (int s = 0; s < kSlots; ++s) {
    if (slot_free_[s] != nullptr) driver_.cuEventDestroy(slot_free_[s]);
    if (slot_[s] != nullptr) driver_.cuMemFreeHost(slot_[s]);
  }
  if (step_ != nullptr) driver_.cuEventDestroy(step_);
  if (in_ != nullptr) driver_.cuStreamDestroy(in_);
  if (out_ != nullptr) driver_.cuStreamDestroy(out_);
}

void Staging::synchronize() {
  if (in_ != nullptr) driver_.cuStreamSynchronize(in_);
  if (out_ != nullptr) driver_.cuStreamSynchronize(out_);
}

Status Staging::open() {
  for (CUstream* stream : {&in_, &out_})
    if (*stream == nullptr)
      PENSTOCK_TRY(
          driver_.check(driver_.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  if (step_ == nullptr)
    PENSTOCK_TRY(
        driver_.check(driver_.cuEventCreate(&step_, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
  for (int s = 0; s < kSlots; ++s) {
    if (slot_free_[s] == nullptr)
      PENSTOCK_TRY(driver_.check(driver_.cuEventCreate(&slot_free_[s], CU_EVENT_DISABLE_TIMING),
                                 "cuEventCreate"));
    if (slot_[s] != nullptr) continue;
    void* memory = nullptr;
    PENSTOCK_TRY(
        driver_.check(driver_.cuMemHostAlloc(&memory, kSlotBytes,
                                             CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                      fmt::format("cuMemHostAlloc of {} bytes of pinned memory", kSlotBytes)));
    if (const CUresult mapped = driver_.cuMemHostGetDevicePointer(&slot_device_[s], memory, 0);
        mapped != CUDA_SUCCESS) {
      driver_.cuMemFreeHost(memory);
      return driver_.check(mapped, "cuMemHostGetDevicePointer");
    }
    slot_[s] = static_cast<std::byte*>(memory);
  }
  return {};
}

void Staging::marked(std::uint64_t mark) {
  for (auto copies = copies_.rbegin(); copies != copies_.rend() && copies->mark == 0; ++copies)
    copies->mark = mark;
}

void Staging::reached(std::uint64_t mark) {
  while (!copies_.empty() && copies_.front().mark != 0 && copies_.front().mark <= mark)
    copies_.pop_front();
}

void CUDA_CB Staging::copy(void* copies) {
  for (const Copies::One& one : static_cast<const Copies*>(copies)->all)
    std::memcpy(one.to, one.from, one.bytes);
}

Status Staging::put(CUstream stream, Copies copies) {
  copies_.push_back(std::move(copies));
  return driver_.check(driver_.cuLaunchHostFunc(stream, copy, &copies_.back()), "cuLaunchHostFunc");
}

Status Staging::after(CUstream stream, CUstream other, CUevent event) {
  PENSTOCK_TRY(driver_.check(driver_.cuEventRecord(event, other), "cuEventRecord"));
  return driver_.check(driver_.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT),
                       "cuStreamWaitEvent");
}

Status Staging::run(const std::vector<Operand>& operands, std::uint64_t count,
                    const ChunkWork& work) {
  PENSTOCK_TRY(open());
  const auto staged = static_cast<std::uint64_t>(
      std::count_if(operands.begin(), operands.end(),
                    [](const Operand& operand) { return operand.place.staged; }));
  const std::uint64_t operand_bytes = kSlotBytes / std::max<std::uint64_t>(staged, 1);
  // As many elements as fit of the widest operand, behind the distance from a multiple of 64.
  std::uint64_t n = count;
  for (const Operand& operand : operands) {
    const std::uint64_t chunk_bytes = offset_of(operand, kChunk);
    if (operand.place.staged) n = std::min(n, (operand_bytes - kAlign) / chunk_bytes * kChunk);
  }
  // Earlier work may write what is copied in.
  PENSTOCK_TRY(after(in_, work_, step_));
  PENSTOCK_TRY(after(out_, work_, step_));
  int slot = 0;
  for (std::uint64_t first = 0; first < count; first += n, slot = (slot + 1) % kSlots)
    PENSTOCK_TRY(run_chunk(operands, work, first, std::min(n, count - first), operand_bytes, slot));
  return after(work_, out_, step_);
}

Status Staging::run_chunk(const std::vector<Operand>& operands, const ChunkWork& work,
                          std::uint64_t first, std::uint64_t n, std::uint64_t operand_bytes,
                          int slot) {
  Copies in, out;
  std::vector<std::uint64_t> at;
  at.reserve(operands.size());
  std::uint64_t used = 0;
  for (const Operand& operand : operands) {
    const std::uint64_t offset = offset_of(operand, first);
    if (!operand.place.staged) {
      at.push_back(operand.place.address + offset);
      continue;
    }
    std::byte* data = operand.data + offset;
    const std::uint64_t bytes = penstock_operand_bytes(operand.type, operand.block, n);
    // Operands keep their distance from packs, so that what agrees goes on to.
    const std::uint64_t into =
        used * (operand_bytes / kAlign * kAlign) + reinterpret_cast<std::uintptr_t>(data) % kAlign;
    ++used;
    at.push_back(slot_device_[slot] + into);
    if (operand.read) in.all.push_back({slot_[slot] + into, data, bytes});
    if (operand.written) out.all.push_back({data, slot_[slot] + into, bytes});
  }
  const bool copies_out = !out.all.empty();
  // The slot's former chunk is out.
  PENSTOCK_TRY(
      driver_.check(driver_.cuStreamWaitEvent(in_, slot_free_[slot], CU_EVENT_WAIT_DEFAULT),
                    "cuStreamWaitEvent"));
  if (!in.all.empty()) PENSTOCK_TRY(put(in_, std::move(in)));
  PENSTOCK_TRY(after(work_, in_, step_));
  PENSTOCK_TRY(work(at.data(), first, n));
  PENSTOCK_TRY(after(out_, work_, step_));
  if (copies_out) PENSTOCK_TRY(put(out_, std::move(out)));
  return driver_.check(driver_.cuEventRecord(slot_free_[slot], out_), "cuEventRecord");
}

}  // namespace penstock::cuda
