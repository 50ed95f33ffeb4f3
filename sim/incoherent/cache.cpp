#include "penstock/sim/incoherent/cache.h"

#include <algorithm>

namespace penstock::sim {

void CachedDevice::write(std::uint64_t line) {
  touch(line);
  memory_->write_line(line, copy_.data() + line * kLine);
  std::memcpy(shadow_.data() + line * kLine, copy_.data() + line * kLine, kLine);
}

void CachedDevice::drop(std::uint64_t line) {
  if (is_dirty(line)) {
    write(line);
  } else {
    lose(line);
  }
}

void CachedDevice::lose(std::uint64_t line) {
  touch(line);
  std::memcpy(copy_.data() + line * kLine, memory_->line(line), kLine);
  std::memcpy(shadow_.data() + line * kLine, memory_->line(line), kLine);
}

std::vector<std::uint64_t> CachedDevice::dirty_lines() const {
  std::vector<std::uint64_t> found;
  for (std::uint64_t page = 0; page < copy_.pages(); ++page) {
    const std::uint64_t at = page * kPage;
    if (std::memcmp(copy_.data() + at, shadow_.data() + at, kPage) == 0) continue;
    for (std::uint64_t line = at / kLine; line < (at + kPage) / kLine; ++line) {
      if (is_dirty(line)) found.push_back(line);
    }
  }
  return found;
}

std::uint64_t CachedDevice::dirty_line_of_page(std::uint64_t page) const {
  const std::uint64_t first = page * kPage / kLine;
  for (std::uint64_t line = first; line < first + kPage / kLine; ++line) {
    if (is_dirty(line)) return line;
  }
  return bytes() / kLine;
}

CachedDevice& Cache::of(const std::shared_ptr<DeviceMemory>& memory) {
  for (const auto& device : devices_) {
    if (&device->memory() == memory.get()) return *device;
  }
  devices_.push_back(std::make_unique<CachedDevice>(memory));
  return *devices_.back();
}

CachedDevice* Cache::find(const void* address, std::uint64_t* offset) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const auto& device : devices_) {
    const auto base = reinterpret_cast<std::uintptr_t>(device->data());
    if (at < base || at - base >= device->bytes()) continue;
    *offset = at - base;
    return device.get();
  }
  return nullptr;
}

void Cache::forget(const DeviceMemory& memory) {
  for (Noted& noted : noted_) {
    if (noted.device != nullptr && &noted.device->memory() == &memory) noted = {};
  }
  std::erase_if(devices_, [&](const auto& device) { return &device->memory() == &memory; });
}

void Cache::note(CachedDevice* device, std::uint64_t first, std::uint64_t count) {
  noted_[next_noted_] = {device, first, count};
  next_noted_ = (next_noted_ + 1) % kNoted;
}

CachedLine Cache::pick(Random& random) const {
  if (devices_.empty()) return {};
  if (random.chance(64)) {
    CachedDevice& device = *devices_[random.below(static_cast<std::uint32_t>(devices_.size()))];
    const auto pages = static_cast<std::uint32_t>(device.bytes() / kPage);
    const std::uint64_t line = device.dirty_line_of_page(random.below(pages));
    return line < device.bytes() / kLine ? CachedLine{&device, line} : CachedLine{};
  }
  const Noted& noted = noted_[random.below(kNoted)];
  if (noted.device == nullptr) return {};
  // From one before the range to one after it.
  const std::uint64_t last = noted.device->bytes() / kLine - 1;
  const std::uint64_t at = noted.first + random.below(static_cast<std::uint32_t>(noted.count) + 2);
  return {noted.device, std::min(last, at == 0 ? 0 : at - 1)};
}

}  // namespace penstock::sim
