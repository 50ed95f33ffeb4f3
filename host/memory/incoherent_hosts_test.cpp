// Two hosts whose caches know nothing of each other: what is not written back and invalidated is
// not seen. Each host has its own platform with a private copy of every mapping (its cache) and a
// shadow of what that copy held when it was last in step (a line that differs from it is dirty).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "penstock/base/forwarding_platform_test.h"
#include "penstock/memory/fence.h"
#include "penstock/memory/temporary_pool_test.h"

namespace penstock {
namespace {

class CachedHost final : public ForwardingPlatform {
 public:
  ~CachedHost() override {
    for (Mapping& mapping : mappings_) release(mapping);
  }
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                     unsigned permissions) override {
    auto file = to_.open(path, mode, permissions);
    if (!file.ok()) return file;
    return std::unique_ptr<File>(new CachedFile(std::move(file).value(), *this));
  }
  Status unmap(void* address, std::uint64_t) override {
    for (std::size_t i = 0; i < mappings_.size(); ++i) {
      if (mappings_[i].cache != address) continue;
      // A cache writes its dirty lines back in the end.
      invalidate(address, mappings_[i].bytes);
      release(mappings_[i]);
      mappings_.erase(mappings_.begin() + static_cast<std::ptrdiff_t>(i));
      return Status();
    }
    return error(Code::invalid_argument, "no mapping");
  }
  // Another machine: neither its locks nor its processes are seen from here.
  void be_remote(std::uint8_t boot) {
    boot_ = boot;
    has_own_locks_ = true;
  }
  ProcessIdentity self() override {
    ProcessIdentity self = to_.self();
    self.boot_id[0] ^= boot_;
    return self;
  }
  // Runs `action` before the n-th fence from now, once.
  void interrupt_at(int fence, std::function<void()> action) {
    fences_left_ = fence;
    action_ = std::move(action);
  }
  bool was_interrupted() const { return action_ == nullptr; }
  void store_fence() override { count_fence(); }
  void full_fence() override { count_fence(); }

  void write_back(const void* data, std::size_t bytes) override {
    for_each_line(data, bytes, [](Mapping& mapping, std::uint64_t at) { mapping.clean(at); });
  }
  void invalidate(const void* data, std::size_t bytes) override {
    for_each_line(data, bytes, [](Mapping& mapping, std::uint64_t at) {
      mapping.clean(at);
      std::memcpy(mapping.cache + at, mapping.memory + at, 64);
      std::memcpy(mapping.shadow.data() + at, mapping.memory + at, 64);
    });
  }

 private:
  struct Mapping {
    std::byte* memory;
    std::byte* cache;
    std::vector<std::byte> shadow;
    std::uint64_t bytes;
    void clean(std::uint64_t at) {
      if (std::memcmp(cache + at, shadow.data() + at, 64) == 0) return;
      std::memcpy(memory + at, cache + at, 64);
      std::memcpy(shadow.data() + at, cache + at, 64);
    }
  };

  class CachedFile final : public File {
   public:
    CachedFile(std::unique_ptr<File> to, CachedHost& host) : to_(std::move(to)), host_(host) {}
    const std::string& path() const override { return to_->path(); }
    Result<std::uint64_t> size() const override { return to_->size(); }
    Status reserve(std::uint64_t bytes) override { return to_->reserve(bytes); }
    Result<std::size_t> read_at(std::uint64_t at, void* data, std::size_t bytes) const override {
      return to_->read_at(at, data, bytes);
    }
    Status write_at(std::uint64_t at, const void* data, std::size_t bytes) override {
      return to_->write_at(at, data, bytes);
    }
    Result<std::byte*> map(std::uint64_t bytes) override {
      PENSTOCK_ASSIGN(std::byte * memory, to_->map(bytes));
      auto* cache = static_cast<std::byte*>(std::aligned_alloc(4096, bytes));
      std::memcpy(cache, memory, bytes);
      host_.mappings_.push_back({memory, cache, {memory, memory + bytes}, bytes});
      return cache;
    }
    Status try_lock(std::uint64_t at, std::uint64_t n) override {
      return host_.has_own_locks_ ? Status() : to_->try_lock(at, n);
    }
    Status try_lock_shared(std::uint64_t at, std::uint64_t n) override {
      return to_->try_lock_shared(at, n);
    }
    Status lock(std::uint64_t at, std::uint64_t n, std::uint32_t timeout_ms) override {
      return to_->lock(at, n, timeout_ms);
    }
    Status unlock(std::uint64_t at, std::uint64_t n) override { return to_->unlock(at, n); }
    Result<bool> is_locked(std::uint64_t at, std::uint64_t n) const override {
      return to_->is_locked(at, n);
    }
    std::uint64_t identity() const override { return to_->identity(); }

   private:
    std::unique_ptr<File> to_;
    CachedHost& host_;
  };

  void count_fence() {
    if (action_ == nullptr || --fences_left_ > 0) return;
    const std::function<void()> action = std::exchange(action_, nullptr);
    action();
  }
  void release(Mapping& mapping) {
    std::free(mapping.cache);
    (void)to_.unmap(mapping.memory, mapping.bytes);
  }

  template <typename Step>
  void for_each_line(const void* data, std::size_t bytes, Step step) {
    const auto* begin = static_cast<const std::byte*>(data);
    for (Mapping& mapping : mappings_) {
      if (begin < mapping.cache || begin >= mapping.cache + mapping.bytes) continue;
      const auto first = static_cast<std::uint64_t>(begin - mapping.cache);
      for (std::uint64_t at = first / 64 * 64; at < first + bytes; at += 64) step(mapping, at);
    }
  }

  std::vector<Mapping> mappings_;
  std::uint8_t boot_ = 0;
  bool has_own_locks_ = false;
  int fences_left_ = 0;
  std::function<void()> action_;
};

class IncoherentHosts : public PoolTest {
 protected:
  void run(Coherence coherence) {
    create(4 * kMiB, 2, 2);
    zero_ = map(host_zero_, 0, coherence);
    one_ = map(host_one_, 1, coherence);
  }
  void TearDown() override {
    zero_.reset();
    one_.reset();
    PoolTest::TearDown();
  }
  CachedHost host_zero_;
  CachedHost host_one_;
  std::unique_ptr<Pool> zero_;
  std::unique_ptr<Pool> one_;
};

// The simulation can tell: under the wrong coherence nothing of the other host is seen.
TEST_F(IncoherentHosts, hardware_coherence_is_not_enough) {
  run(Coherence::hardware);
  ASSERT_TRUE(zero_->allocate(request(4096, "table")).ok());
  EXPECT_EQ(one_->find(RegionKind::user, "table").status().code(), Code::not_found);
}

TEST_F(IncoherentHosts, regions_are_seen_by_the_other_host) {
  run(Coherence::software);
  const auto region = zero_->allocate(request(4096, "table")).value();
  const auto found = one_->find(RegionKind::user, "table");
  ASSERT_EQ(found.status().to_string(), "ok");
  EXPECT_EQ(found.value().address, region.address);
  EXPECT_EQ(one_->allocate(request(4096, "table")).status().code(), Code::already_exists);
  const auto mine = one_->allocate(request(8192, "other")).value();
  EXPECT_EQ(zero_->regions().size(), 2u);
  EXPECT_EQ(zero_->regions()[1].lease.host, 1u);
  EXPECT_EQ(zero_->regions()[1].owner, Liveness::alive);
  ASSERT_TRUE(zero_->free(region).ok());
  EXPECT_EQ(one_->find(RegionKind::user, "table").status().code(), Code::not_found);
  EXPECT_EQ(zero_->find(RegionKind::user, "other").value().address, mine.address);
  EXPECT_TRUE(zero_->check().empty());
  EXPECT_TRUE(one_->check().empty());
  const Lease lease = one_->lease();
  one_.reset();
  EXPECT_EQ(zero_->liveness(lease), Liveness::dead);
}

TEST_F(IncoherentHosts, a_payload_is_seen_once_it_is_published_and_observed) {
  run(Coherence::software);
  const auto region = zero_->allocate(request(4096)).value();
  std::byte* writer = zero_->resolve(region.address, region.bytes);
  std::byte* reader = one_->resolve(region.address, region.bytes);
  Fence signal(*zero_, writer);
  Fence wait(*one_, reader);
  std::memset(writer, 0, 4096);
  zero_->publish(writer, 4096);
  EXPECT_EQ(wait.load(), 0u);

  std::memset(writer + 64, 7, 1000);
  one_->observe(reader + 64, 1000);
  EXPECT_EQ(reader[64], std::byte{0}) << "not published yet";
  zero_->publish(writer + 64, 1000);
  signal.signal(1);
  EXPECT_TRUE(wait.reached(1));
  EXPECT_EQ(reader[64], std::byte{0}) << "not observed yet";
  one_->observe(reader + 64, 1000);
  for (int at = 64; at < 1064; ++at) ASSERT_EQ(reader[at], std::byte{7}) << at;
  EXPECT_EQ(reader[1064], std::byte{0});
}

// Two machines claim the same name, one in the middle of the other's call, at each of its steps.
TEST_F(IncoherentHosts, a_name_is_won_by_one_host_however_the_calls_interleave) {
  host_zero_.be_remote(1);
  host_one_.be_remote(2);
  create(2 * kMiB, 1, 2);
  MapOptions options;
  options.coherence = Coherence::software;
  options.lock_timeout_ms = 1;
  zero_ = Pool::map(host_zero_, spec_, options).value();
  options.host_id = 1;
  one_ = Pool::map(host_one_, spec_, options).value();
  int wins[2] = {};
  for (const bool zero_first : {true, false}) {
    Pool& outer = zero_first ? *zero_ : *one_;
    Pool& inner = zero_first ? *one_ : *zero_;
    CachedHost& host = zero_first ? host_zero_ : host_one_;
    bool interrupted = true;
    for (int fence = 1; interrupted; ++fence) {
      Result<Region> second = error(Code::internal, "not run");
      host.interrupt_at(fence, [&] { second = inner.allocate(request(4096, "name")); });
      Result<Region> first = outer.allocate(request(4096, "name"));
      interrupted = host.was_interrupted();
      host.interrupt_at(0, nullptr);
      if (!interrupted) {
        ASSERT_TRUE(first.ok());
        ASSERT_TRUE(outer.free(*first).ok());
        break;
      }
      ASSERT_NE(first.ok(), second.ok()) << "fence " << fence << ": " << first.status().to_string()
                                         << " and " << second.status().to_string();
      const Status& of_one = zero_first ? second.status() : first.status();
      ASSERT_NE(of_one.code(), Code::deadline_exceeded) << "the higher host never waits";
      ++wins[first.ok() ? 0 : 1];
      for (Pool* pool : {zero_.get(), one_.get()}) {
        ASSERT_EQ(pool->regions().size(), 1u);
        ASSERT_TRUE(pool->find(RegionKind::user, "name").ok());
      }
      ASSERT_TRUE(first.ok() ? outer.free(*first).ok() : inner.free(*second).ok());
    }
  }
  EXPECT_GT(wins[0], 3);
  EXPECT_GT(wins[1], 3);
}

// Both hosts keep allocating and freeing; neither's write-back may undo the other's.
TEST_F(IncoherentHosts, many_turns_stay_sound) {
  run(Coherence::software);
  std::vector<Region> live[2];
  Pool* pools[2] = {zero_.get(), one_.get()};
  std::uint64_t random = 1;
  for (int turn = 0; turn < 2000; ++turn) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::size_t who = (random >> 40) & 1;
    if (live[who].size() < 20 && ((random >> 41) & 1) != 0) {
      auto region = pools[who]->allocate(request(1 + (random >> 45) % 30000));
      ASSERT_EQ(region.status().to_string(), "ok");
      live[who].push_back(*region);
    } else if (!live[who].empty()) {
      ASSERT_TRUE(pools[who]->free(live[who].back()).ok());
      live[who].pop_back();
    }
    if (turn % 100 == 0) {
      for (Pool* pool : pools) {
        ASSERT_EQ(pool->regions().size(), live[0].size() + live[1].size()) << turn;
        ASSERT_TRUE(pool->check().empty());
      }
    }
  }
}

}  // namespace
}  // namespace penstock
