// What the parts of the conformance suite share: an engine with a queue, and memory that it
// reaches. Internal to host/engine.
#ifndef PENSTOCK_ENGINE_CONFORMANCE_RIG_H_
#define PENSTOCK_ENGINE_CONFORMANCE_RIG_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "penstock/engine/conformance.h"
#include "penstock/queue/queue.h"

namespace penstock::conformance {

class Rig {
 public:
  static Result<std::unique_ptr<Rig>> create(Engine& engine, const ConformanceOptions& options,
                                             std::uint64_t bytes);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  Engine& engine() { return engine_; }
  Queue& queue() { return *queue_; }
  Pool* pool() { return options_.pool; }
  const ConformanceOptions& options() const { return options_; }
  const Capabilities& capabilities() const { return engine_.capabilities(); }

  // The arena: `bytes()` bytes, line-aligned.
  std::byte* memory() { return memory_; }
  std::uint64_t bytes() const { return bytes_; }
  penstock_address address(std::uint64_t offset) const { return base_ + offset; }
  // Before an engine reads what was stored, and before what it stored is read.
  void publish(std::uint64_t offset, std::uint64_t bytes);
  void observe(std::uint64_t offset, std::uint64_t bytes);

  // Submits and advances until the completion is there. deadline_exceeded if it does not come.
  Result<penstock_completion> run(const penstock_descriptor& descriptor);
  // Advances until the next completion.
  Result<penstock_completion> next();

  std::uint64_t now_ns();

 private:
  Rig(Engine& engine, const ConformanceOptions& options) : engine_(engine), options_(options) {}

  Engine& engine_;
  const ConformanceOptions options_;
  std::unique_ptr<Queue> queue_;
  std::uint64_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  penstock_address base_ = 0;
  Region region_;
  std::vector<std::byte> host_memory_;
};

// Counts what a row compared and keeps its first failure.
class Tally {
 public:
  void compared(std::uint64_t n = 1) { comparisons_ += n; }
  void fail(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }
  void expect(bool condition, const std::string& reason) {
    compared();
    if (!condition) fail(reason);
  }
  bool failed() const { return !reason_.empty(); }
  ConformanceRow row(std::string operation, std::string type = "") const;

 private:
  std::uint64_t comparisons_ = 0;
  std::string reason_;
};
ConformanceRow unsupported_row(std::string operation, std::string type, std::string reason);

penstock_descriptor make_descriptor(std::uint32_t opcode, std::uint32_t n_src, std::uint32_t n_dst);
// "invalid_argument (field dst)"
std::string describe(const penstock_completion& completion);

bool has(const Rig& rig, std::uint32_t opcode);

// What is about the protocol lives in the arena's first part, which is compared as a whole; the
// fences of a barrier stand behind it.
inline constexpr std::uint64_t kArea = 32768;
inline constexpr std::uint64_t kFence = 16384;
inline constexpr std::uint64_t kBarrier = kArea;

// Fills the area, with a fence at 0, and tells whether it still is what `expected` says.
class Snapshot {
 public:
  explicit Snapshot(Rig& rig);
  std::byte* expected() { return bytes_.data(); }
  bool holds();

 private:
  Rig& rig_;
  std::vector<std::byte> bytes_;
};

// Runs a descriptor and compares its completion.
void expect_outcome(Rig& rig, const penstock_descriptor& d, std::uint32_t status,
                    std::uint32_t field, std::uint64_t detail, const char* what, Tally* tally);

// The parts. Each appends its rows.
void check_copy(Rig& rig, std::vector<ConformanceRow>* rows);
void check_reduce(Rig& rig, std::vector<ConformanceRow>* rows);
void check_fused(Rig& rig, std::vector<ConformanceRow>* rows);
void check_malformed(Rig& rig, std::vector<ConformanceRow>* rows);
void check_addresses(Rig& rig, std::vector<ConformanceRow>* rows);
void check_fences(Rig& rig, std::vector<ConformanceRow>* rows);
void check_barrier(Rig& rig, std::vector<ConformanceRow>* rows);
void check_select(Rig& rig, std::vector<ConformanceRow>* rows);

}  // namespace penstock::conformance
#endif
