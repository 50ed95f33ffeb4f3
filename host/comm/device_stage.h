// What a pass of a call needs of buffers in a device's memory, as copies in memory that the process
// reaches: copied in before the pass, copied out after it. The next pass's bytes come in, and the
// last one's go out, while a pass runs.
#ifndef PENSTOCK_COMM_DEVICE_STAGE_H_
#define PENSTOCK_COMM_DEVICE_STAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/comm/comm.h"
#include "penstock/comm/plan.h"
#include "penstock/engine/device_memory.h"

namespace penstock {

// One call's passes at a time; memory stays for the next call's. Not thread-safe.
class DeviceStage {
 public:
  // A pass of a call: bytes [done, done + bytes) of each part, whose parts are `total` bytes.
  struct Pass {
    const Plan* plan;  // null: not a pass, but all of the buffers
    std::uint64_t done;
    std::uint64_t bytes;
    bool operator==(const Pass&) const = default;
  };

  // A call whose buffers are in this memory; null for one that the process reaches. io_error or
  // no_space from the device.
  Status begin_call(const Call& call, DeviceMemory* send, DeviceMemory* recv, std::uint32_t self,
                    std::uint64_t total);
  // Instead of passes: all of the buffers, of so many bytes, as they are; then end_pass() once.
  Status begin_whole(std::uint64_t send_bytes, std::uint64_t recv_bytes);
  // Has what the steps of this rank read. `next` is started with, if it is not null.
  Status begin_pass(const Pass& pass, const Pass* next);
  // Starts with what the steps of this rank wrote.
  Status end_pass();
  // Waits until everything is where the caller wants it.
  Status end_call();

  // Where a slice of the pass that begins at `done` is; null if its buffer is not in a device's
  // memory.
  std::byte* place(const Slice& slice, std::uint64_t done) const;

 private:
  static constexpr int kSlots = 3;
  struct Side {
    DeviceMemory* memory = nullptr;  // null: the process reaches the buffer
    std::byte* buffer = nullptr;
    std::uint64_t whole = 0;  // bytes of the buffer, if it is staged as a whole
    std::uint64_t bytes[kSlots] = {};
    std::shared_ptr<std::byte> slot[kSlots];
    DeviceMemory* opened = nullptr;        // whose copies they are
    std::unique_ptr<DeviceCopies> copies;  // go first, and wait for what is on its way
  };
  // Bytes of a side that the steps read before they write them, or write.
  struct Range {
    Space space;
    std::uint64_t at;  // within the copy of the pass
    std::uint64_t device;
    std::uint64_t bytes;
  };
  struct Slot {
    Pass pass{nullptr, 0, 0};
    std::uint64_t read[2] = {};     // marks of each side's reads
    std::uint64_t written[2] = {};  // marks of the writes of the pass that used it last
  };

  Side& side(Space space) { return sides_[space == Space::send ? 0 : 1]; }
  const Side& side(Space space) const { return sides_[space == Space::send ? 0 : 1]; }
  std::vector<Range> ranges(const Pass& pass, bool written) const;
  Status open(Side* side, const std::byte* buffer);
  Status reserve(const Pass& pass, int slot);
  std::uint64_t slot_bytes(const Side& side, const Pass& pass) const;
  Status fetch(const Pass& pass, int slot);

  std::array<Side, 2> sides_;  // send, recv
  std::array<Slot, kSlots> slots_;
  std::uint32_t self_ = 0;
  std::uint64_t total_ = 0;
  int current_ = 0;
};

}  // namespace penstock
#endif
