// Hosts whose caches know nothing of each other, over one small memory: for unit tests of what is
// written and read through SharedMemory, Pool::publish and Pool::observe.
//
// A store changes the host's own cache. A line gets to the memory whole, when it is evicted, which
// may be at any moment and in any order, or at a fence after it was written back. A line that was
// filled is stale until it is evicted clean, or invalidated and a full fence has come.
#ifndef PENSTOCK_MEMORY_INCOHERENT_MEMORY_TEST_H_
#define PENSTOCK_MEMORY_INCOHERENT_MEMORY_TEST_H_

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "penstock/base/forwarding_platform_test.h"

namespace penstock {

inline constexpr std::size_t kLineBytes = 64;

// Line-aligned bytes, zero at first.
class LineBuffer {
 public:
  explicit LineBuffer(std::size_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(std::aligned_alloc(kLineBytes, bytes))) {
    std::memset(data_.get(), 0, bytes);
  }
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

class IncoherentHost : public ForwardingPlatform {
 public:
  IncoherentHost(LineBuffer& memory, std::uint64_t seed)
      : memory_(memory), cache_(memory.size()), shadow_(memory.size()), random_(seed) {
    drop_cache();
  }

  // This host's mapping of the memory.
  std::byte* base() const { return cache_.data(); }
  // Called at every access, so that others can get in between.
  std::function<void()> on_access;
  // How many of 256 accesses evict a line of their own accord.
  unsigned evictions_of_256 = 0;

  // The power fails: what was not written back is lost.
  void drop_cache() {
    std::memcpy(cache_.data(), memory_.data(), memory_.size());
    std::memcpy(shadow_.data(), memory_.data(), memory_.size());
    written_back_.clear();
    invalidated_.clear();
  }
  // Evicts one line: a dirty one is written, a clean one filled anew.
  void evict(std::size_t line) {
    clean(line);
    fill(line);
  }

  void write_back(const void* data, std::size_t bytes) override {
    for_each_line(data, bytes, [this](std::size_t line) { written_back_.insert(line); });
    access();
  }
  void invalidate(const void* data, std::size_t bytes) override {
    for_each_line(data, bytes, [this](std::size_t line) { invalidated_.insert(line); });
    access();
  }
  void store_fence() override {
    complete(&written_back_, false);
    access();
  }
  void full_fence() override {
    complete(&written_back_, false);
    complete(&invalidated_, true);
    access();
  }
  std::uint64_t random() override { return random_(); }

 private:
  void access() {
    if (evictions_of_256 > random_() % 256) evict(random_() % (memory_.size() / kLineBytes));
    if (on_access) on_access();
  }
  void clean(std::size_t line) {
    const std::size_t at = line * kLineBytes;
    if (std::memcmp(cache_.data() + at, shadow_.data() + at, kLineBytes) == 0) return;
    std::memcpy(memory_.data() + at, cache_.data() + at, kLineBytes);
    std::memcpy(shadow_.data() + at, cache_.data() + at, kLineBytes);
  }
  void fill(std::size_t line) {
    const std::size_t at = line * kLineBytes;
    std::memcpy(cache_.data() + at, memory_.data() + at, kLineBytes);
    std::memcpy(shadow_.data() + at, memory_.data() + at, kLineBytes);
  }
  // In any order, and others may see the lines that are through.
  void complete(std::set<std::size_t>* lines, bool fills) {
    while (!lines->empty()) {
      auto line = lines->begin();
      std::advance(line, static_cast<std::ptrdiff_t>(random_() % lines->size()));
      clean(*line);
      if (fills) fill(*line);
      lines->erase(line);
      if (on_access) on_access();
    }
  }
  template <typename Step>
  void for_each_line(const void* data, std::size_t bytes, Step step) {
    const auto* begin = static_cast<const std::byte*>(data);
    PENSTOCK_CHECK(begin >= cache_.data() && begin + bytes <= cache_.data() + cache_.size(),
                   "not this host's mapping");
    const auto first = static_cast<std::size_t>(begin - cache_.data());
    for (std::size_t line = first / kLineBytes; line * kLineBytes < first + bytes; ++line) {
      step(line);
    }
  }

  LineBuffer& memory_;
  LineBuffer cache_;
  LineBuffer shadow_;  // what the cache held when it was last in step
  std::mt19937_64 random_;
  std::set<std::size_t> written_back_;  // by the next fence
  std::set<std::size_t> invalidated_;   // by the next full fence
};

}  // namespace penstock
#endif
