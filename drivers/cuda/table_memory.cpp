#include "penstock/drivers/cuda/table_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::cuda {
namespace {

// Sizes are rounded up, so that batches of about the same size use the same memory.
constexpr std::uint64_t kGrain = std::uint64_t{64} << 10;
// Pinned blocks that are kept for later.
constexpr std::size_t kMostPinned = 8;

std::uint64_t rounded(std::uint64_t bytes) {
  return std::max((bytes + kGrain - 1) / kGrain * kGrain, kGrain);
}

}  // namespace

TableMemory::~TableMemory() {
  for (const Buffer& buffer : buffers_)
    if (buffer.bytes != 0) driver_.cuMemFree(buffer.address);
  for (const Old& old : old_) driver_.cuMemFree(old.address);
  for (const Pinned& pinned : pinned_) driver_.cuMemFreeHost(pinned.block.data);
}

Result<CUdeviceptr> TableMemory::device(Use use, std::uint64_t bytes) {
  Buffer& buffer = buffers_[use];
  if (bytes <= buffer.bytes) return buffer.address;
  const std::uint64_t grown = rounded(bytes);
  CUdeviceptr address = 0;
  PENSTOCK_TRY(driver_.check(driver_.cuMemAlloc(&address, grown),
                             fmt::format("cuMemAlloc of {} bytes", grown)));
  if (buffer.bytes != 0) old_.push_back({buffer.address, 0});
  buffer = {address, grown};
  return address;
}

Result<TableMemory::Block> TableMemory::pinned(std::uint64_t bytes) {
  for (Pinned& pinned : pinned_) {
    if (pinned.mark != kFree || pinned.bytes < bytes) continue;
    pinned.mark = 0;
    return pinned.block;
  }
  // One that is too small makes way.
  if (pinned_.size() >= kMostPinned) {
    const auto small = std::find_if(pinned_.begin(), pinned_.end(),
                                    [](const Pinned& pinned) { return pinned.mark == kFree; });
    if (small != pinned_.end()) {
      driver_.cuMemFreeHost(small->block.data);
      pinned_.erase(small);
    }
  }
  const std::uint64_t grown = rounded(bytes);
  void* memory = nullptr;
  PENSTOCK_TRY(driver_.check(
      driver_.cuMemHostAlloc(&memory, grown, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
      fmt::format("cuMemHostAlloc of {} bytes of pinned memory", grown)));
  Block block{static_cast<std::byte*>(memory), 0};
  if (const CUresult mapped = driver_.cuMemHostGetDevicePointer(&block.device, memory, 0);
      mapped != CUDA_SUCCESS) {
    driver_.cuMemFreeHost(memory);
    return driver_.check(mapped, "cuMemHostGetDevicePointer");
  }
  pinned_.push_back({block, grown, 0});
  return block;
}

void CUDA_CB TableMemory::run(void* copies) {
  for (const Copy& one : static_cast<const Copies*>(copies)->all)
    std::memcpy(one.to, one.from, one.bytes);
}

Status TableMemory::copy_on_host(std::vector<Copy> copies) {
  copies_.push_back({std::move(copies), 0});
  return driver_.check(driver_.cuLaunchHostFunc(stream_, run, &copies_.back()), "cuLaunchHostFunc");
}

void TableMemory::marked(std::uint64_t mark) {
  for (Old& old : old_)
    if (old.mark == 0) old.mark = mark;
  for (Pinned& pinned : pinned_)
    if (pinned.mark == 0) pinned.mark = mark;
  for (Copies& copies : copies_)
    if (copies.mark == 0) copies.mark = mark;
}

void TableMemory::reached(std::uint64_t mark) {
  while (!old_.empty() && old_.front().mark != 0 && old_.front().mark <= mark) {
    driver_.cuMemFree(old_.front().address);
    old_.pop_front();
  }
  for (Pinned& pinned : pinned_)
    if (pinned.mark != 0 && pinned.mark != kFree && pinned.mark <= mark) pinned.mark = kFree;
  while (!copies_.empty() && copies_.front().mark != 0 && copies_.front().mark <= mark)
    copies_.pop_front();
}

}  // namespace penstock::cuda
