#include "penstock/sim/xrt/bank_memory.h"

#include <xrt_mem.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace penstock::sim {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

BankMemory::~BankMemory() {
  for (auto& [handle, buffer] : buffers_) drop(buffer);
}

void BankMemory::drop(Buffer& buffer) {
  if (buffer.mapped) reached_(buffer, false);
  for (std::byte* memory : buffer.owned) std::free(memory);
}

// The first place that is free.
int BankMemory::place(const BankConfig& bank, std::uint64_t bytes, std::uint64_t* address) const {
  std::uint64_t at = bank.base;
  for (auto it = by_address_.lower_bound(bank.base); it != by_address_.end(); ++it) {
    if (it->first >= bank.base + bank.bytes) break;
    if (it->first - at >= pages(bytes)) break;
    at = it->first + pages(buffers_.at(it->second).bytes);
  }
  if (pages(bytes) > bank.bytes || at - bank.base > bank.bytes - pages(bytes)) return ENOMEM;
  *address = at;
  return 0;
}

int BankMemory::allocate(std::uint64_t bytes, std::uint32_t flags, std::byte* user,
                         std::uint32_t* handle) {
  if (bytes == 0 || reinterpret_cast<std::uintptr_t>(user) % kPage != 0) return EINVAL;
  if (buffers_.size() >= most_buffers_) return ENOMEM;
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.flags = flags;
  const auto own = [&]() -> std::byte* {
    // A large piece of this kind takes no memory until it is touched.
    auto* memory = static_cast<std::byte*>(std::calloc(pages(bytes) + kPage, 1));
    if (memory == nullptr) return nullptr;
    buffer.owned.push_back(memory);
    return memory + (kPage - reinterpret_cast<std::uintptr_t>(memory) % kPage);
  };
  if ((flags & XCL_BO_FLAGS_EXECBUF) != 0) {
    buffer.host = own();
    if (buffer.host == nullptr) return ENOMEM;
  } else {
    const std::uint32_t group = flags & XRT_BO_FLAGS_MEMIDX_MASK;
    if (group >= banks_.size() || !banks_[group].used) return EINVAL;
    const BankConfig& bank = banks_[group];
    const bool host_only = (flags & XCL_BO_FLAGS_HOST_ONLY) != 0;
    if (bank.host() && (!host_bank_ || (user != nullptr && !user_memory_))) return EINVAL;
    if (!bank.host() && host_only) return EINVAL;
    if (const int failure = place(bank, bytes, &buffer.address); failure != 0) return failure;
    buffer.host = user != nullptr ? user : own();
    buffer.device = bank.host() ? buffer.host : own();
    if (buffer.host == nullptr || buffer.device == nullptr) {
      for (std::byte* memory : buffer.owned) std::free(memory);
      return ENOMEM;
    }
    buffer.mapped = true;
  }
  *handle = next_++;
  if (buffer.mapped) {
    by_address_.emplace(buffer.address, *handle);
    reached_(buffer, true);
  }
  buffers_.emplace(*handle, std::move(buffer));
  return 0;
}

int BankMemory::free(std::uint32_t handle) {
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return ENOENT;
  if (found->second.mapped) by_address_.erase(found->second.address);
  drop(found->second);
  buffers_.erase(found);
  return 0;
}

int BankMemory::sync(std::uint32_t handle, bool to_device, std::uint64_t bytes,
                     std::uint64_t offset) {
  Buffer* buffer = find(handle);
  if (buffer == nullptr) return ENOENT;
  if (offset > buffer->bytes || bytes > buffer->bytes - offset) return EINVAL;
  if (buffer->device == buffer->host || buffer->device == nullptr) return 0;
  if (to_device)
    std::memcpy(buffer->device + offset, buffer->host + offset, bytes);
  else
    std::memcpy(buffer->host + offset, buffer->device + offset, bytes);
  return 0;
}

Buffer* BankMemory::find(std::uint32_t handle) {
  const auto found = buffers_.find(handle);
  return found == buffers_.end() ? nullptr : &found->second;
}

const Buffer* BankMemory::holder(std::uint64_t address) const {
  auto found = by_address_.upper_bound(address);
  if (found == by_address_.begin()) return nullptr;
  const Buffer& buffer = buffers_.at((--found)->second);
  return address - buffer.address < buffer.bytes ? &buffer : nullptr;
}

std::byte* BankMemory::at(std::uint64_t address, std::uint64_t bytes) {
  const Buffer* buffer = holder(address);
  if (buffer == nullptr || bytes > buffer->bytes - (address - buffer->address)) return nullptr;
  return buffer->device + (address - buffer->address);
}

}  // namespace penstock::sim
