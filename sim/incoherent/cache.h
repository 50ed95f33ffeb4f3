// Memory devices that hosts share, and what each host's cache holds of them.
//
// Production code reads and writes shared memory with ordinary loads and stores, which cannot be
// intercepted. So every host works on a copy of each device: its cache, as if that held every line.
// A shadow keeps what the copy held when the line was last in step with the device; a line that
// differs from its shadow is dirty. What a cache may do to a line at any moment the simulation does
// by chance at calls into the platform:
//
//   write back   a dirty line goes to the device, whole, over whatever another host wrote there
//   drop         (after a write-back if dirty) the copy takes what the device holds now
//
// Nothing else moves bytes: a line that is never dropped stays as old as it is.
//
// One thing is not seen: a store of the value that the copy holds already leaves the line clean.
// So an explicit write-back counts as proof of a store (nobody may write back a line that another
// host owns), and is carried out also when the line looks clean.
#ifndef PENSTOCK_SIM_INCOHERENT_CACHE_H_
#define PENSTOCK_SIM_INCOHERENT_CACHE_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "penstock/sim/incoherent/random.h"
#include "penstock/sim/incoherent/zeroed_pages.h"

namespace penstock::sim {

// What all hosts share: the bytes of one device. Not thread-safe, like all of this folder.
class DeviceMemory {
 public:
  DeviceMemory(std::uint32_t number, std::uint64_t bytes)
      : number_(number), pages_(bytes, ZeroedPages::Writers::owner_only) {}
  std::uint32_t number() const { return number_; }  // for traces
  std::uint64_t bytes() const { return pages_.bytes(); }
  const std::byte* line(std::uint64_t line) const { return pages_.data() + line * kLine; }
  void write_line(std::uint64_t line, const std::byte* from) {
    pages_.touch(line * kLine);
    std::memcpy(pages_.data() + line * kLine, from, kLine);
  }

 private:
  std::uint32_t number_;
  ZeroedPages pages_;
};

// One host's copy of one device. Lines are numbered from the device's begin.
class CachedDevice {
 public:
  explicit CachedDevice(std::shared_ptr<DeviceMemory> memory)
      : memory_(std::move(memory)),
        copy_(memory_->bytes(), ZeroedPages::Writers::anyone),
        shadow_(memory_->bytes(), ZeroedPages::Writers::owner_only) {}

  DeviceMemory& memory() const { return *memory_; }
  std::byte* data() const { return copy_.data(); }
  std::uint64_t bytes() const { return copy_.bytes(); }

  bool is_dirty(std::uint64_t line) const {
    return std::memcmp(copy_.data() + line * kLine, shadow_.data() + line * kLine, kLine) != 0;
  }
  // What the device holds differs from the copy.
  bool is_stale(std::uint64_t line) const {
    return std::memcmp(copy_.data() + line * kLine, memory_->line(line), kLine) != 0;
  }
  void write(std::uint64_t line);  // to the device, dirty or not
  void drop(std::uint64_t line);   // written back first if dirty
  void lose(std::uint64_t line);   // power loss: what was not written back is gone
  // Every dirty line, found by looking at every page.
  std::vector<std::uint64_t> dirty_lines() const;
  // A dirty line of this page, or bytes() / kLine.
  std::uint64_t dirty_line_of_page(std::uint64_t page) const;

 private:
  void touch(std::uint64_t line) {
    copy_.touch(line * kLine);
    shadow_.touch(line * kLine);
  }
  std::shared_ptr<DeviceMemory> memory_;
  ZeroedPages copy_;
  ZeroedPages shadow_;
};

// A line of a cached device.
struct CachedLine {
  CachedDevice* device = nullptr;
  std::uint64_t line = 0;
};

// All that one host has cached. It stays when processes unmap and end.
class Cache {
 public:
  // The copy of this device, made at the first call.
  CachedDevice& of(const std::shared_ptr<DeviceMemory>& memory);
  // The device that holds this address; null for other memory. *offset is the byte in it.
  CachedDevice* find(const void* address, std::uint64_t* offset) const;
  const std::vector<std::unique_ptr<CachedDevice>>& devices() const { return devices_; }
  void forget(const DeviceMemory& memory);

  // Remembers lines that were written back or invalidated: chance looks there first.
  void note(CachedDevice* device, std::uint64_t first, std::uint64_t count);
  // A line on which chance may act: mostly one of those noted, or the line before or after, at
  // times a dirty one of any page. device is null if there is none.
  CachedLine pick(Random& random) const;

 private:
  struct Noted {
    CachedDevice* device = nullptr;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  static constexpr std::uint32_t kNoted = 32;

  std::vector<std::unique_ptr<CachedDevice>> devices_;
  Noted noted_[kNoted];
  std::uint32_t next_noted_ = 0;
};

}  // namespace penstock::sim
#endif
