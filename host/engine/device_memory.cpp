#include "penstock/engine/device_memory.h"

#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace penstock {

std::atomic<bool> device_memory_found{false};

namespace {

struct Provider {
  std::function<std::shared_ptr<DeviceMemory>()> find;
  std::shared_ptr<DeviceMemory> memory;  // null while it found none
};
struct Providers {
  std::shared_mutex mutex;
  std::vector<Provider> all;
};
Providers& providers() {
  static auto* const known = new Providers;  // used by whatever is destroyed at exit
  return *known;
}

}  // namespace

void register_device_memory(std::function<std::shared_ptr<DeviceMemory>()> find) {
  const std::unique_lock lock(providers().mutex);
  providers().all.push_back({std::move(find), nullptr});
}

void find_device_memory() {
  const std::unique_lock lock(providers().mutex);
  for (Provider& provider : providers().all) {
    if (provider.memory != nullptr) continue;
    provider.memory = provider.find();
    if (provider.memory != nullptr) device_memory_found.store(true, std::memory_order_release);
  }
}

Result<HostCopy> HostCopy::make(void* data, std::uint64_t bytes, bool filled) {
  HostCopy made;
  made.data_ = data;
  made.bytes_ = bytes;
  DeviceMemory* memory = bytes == 0 ? nullptr : device_memory_of(data);
  if (memory == nullptr) return made;
  PENSTOCK_ASSIGN(made.copies_, memory->open(data));
  PENSTOCK_ASSIGN(made.copy_, made.copies_->allocate(bytes));
  if (!filled) return made;
  PENSTOCK_TRY(made.copies_->read(made.copy_.get(), data, bytes));
  PENSTOCK_ASSIGN(const std::uint64_t mark, made.copies_->mark_reads());
  PENSTOCK_TRY(made.copies_->wait_reads(mark));
  return made;
}

Status HostCopy::write_back() {
  if (copy_ == nullptr) return {};
  PENSTOCK_TRY(copies_->write(data_, copy_.get(), bytes_));
  PENSTOCK_ASSIGN(const std::uint64_t mark, copies_->mark_writes());
  return copies_->wait_writes(mark);
}

DeviceMemory* search_device_memory(const void* data) {
  const std::shared_lock lock(providers().mutex);
  for (const Provider& provider : providers().all)
    if (provider.memory != nullptr && provider.memory->holds(data)) return provider.memory.get();
  return nullptr;
}

}  // namespace penstock
