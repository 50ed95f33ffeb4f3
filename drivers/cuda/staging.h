// Operands that a device does not reach, through pinned buffers: chunk after chunk is copied in,
// worked on and copied out, each on a stream of its own, so that the three overlap.
#ifndef PENSTOCK_DRIVERS_CUDA_STAGING_H_
#define PENSTOCK_DRIVERS_CUDA_STAGING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "penstock/drivers/cuda/memory.h"

namespace penstock::cuda {

// One operand of an operation, and how the device reaches it.
struct Operand {
  std::byte* data;
  Place place;
  std::uint32_t type;  // of penstock_operand_bytes
  std::uint32_t block;
  bool read;
  bool written;
};

// Work on elements [first, first + n) of an operation: `at` has an address for each operand. first
// is a multiple of 64.
using ChunkWork =
    std::function<Status(const std::uint64_t* at, std::uint64_t first, std::uint64_t n)>;

// Of one stream. Its pinned memory is allocated when it is first needed, and stays. One thread at a
// time; the context is current.
class Staging {
 public:
  // `work` is the stream on which ChunkWork launches; it outlives this.
  Staging(const Driver& driver, CUstream work) : driver_(driver), work_(work) {}
  // After the stream came to rest.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Puts all of it on the streams: what `work` holds after this call comes after it. no_space if
  // there is no pinned memory; nothing was started then.
  Status run(const std::vector<Operand>& operands, std::uint64_t count, const ChunkWork& work);
  // What was put on the streams so far is before this mark; what is before a mark is over.
  void marked(std::uint64_t mark);
  void reached(std::uint64_t mark);
  // Waits for the two streams.
  void synchronize();

 private:
  static constexpr std::uint64_t kSlotBytes = std::uint64_t{4} << 20;
  static constexpr int kSlots = 2;

  struct Copies {
    struct One {
      void* to;
      const void* from;
      std::uint64_t bytes;
    };
    std::vector<One> all;
    std::uint64_t mark = 0;  // the first after it; 0 while there is none
  };
  static void CUDA_CB copy(void* copies);
  Status open();
  Status put(CUstream stream, Copies copies);
  // What `stream` does next waits for what is on `other` now.
  Status after(CUstream stream, CUstream other, CUevent event);
  Status run_chunk(const std::vector<Operand>& operands, const ChunkWork& work, std::uint64_t first,
                   std::uint64_t n, std::uint64_t operand_bytes, int slot);

  const Driver& driver_;
  const CUstream work_;
  CUstream in_ = nullptr, out_ = nullptr;
  std::array<std::byte*, kSlots> slot_{};
  std::array<CUdeviceptr, kSlots> slot_device_{};
  std::array<CUevent, kSlots> slot_free_{};
  CUevent step_ = nullptr;
  std::deque<Copies> copies_;  // stay until the streams have come past them
};

}  // namespace penstock::cuda
#endif
