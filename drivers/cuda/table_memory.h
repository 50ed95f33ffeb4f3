// What SELECT and UPDATE of one stream need besides a table: buffers on the device, pinned memory
// on the way to them, and copies that the host makes in the stream's order.
#ifndef PENSTOCK_DRIVERS_CUDA_TABLE_MEMORY_H_
#define PENSTOCK_DRIVERS_CUDA_TABLE_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "penstock/drivers/cuda/driver.h"

namespace penstock::cuda {

// One thread at a time; the context is current. Memory is allocated when it is first needed, grows,
// and stays.
class TableMemory {
 public:
  enum Use { kInputs, kScratch, kResults, kTable, kUses };
  struct Copy {
    void* to;
    const void* from;
    std::uint64_t bytes;
  };
  // Pinned memory, and where the device finds it.
  struct Block {
    std::byte* data = nullptr;
    CUdeviceptr device = 0;
  };

  TableMemory(const Driver& driver, CUstream stream) : driver_(driver), stream_(stream) {}
  // After the stream came to rest.
  ~TableMemory();
  TableMemory(const TableMemory&) = delete;
  TableMemory& operator=(const TableMemory&) = delete;

  // Device memory of at least so many bytes. What was started works on what it was given. no_space.
  Result<CUdeviceptr> device(Use use, std::uint64_t bytes);
  // Pinned memory that is the caller's until the next mark is reached. no_space.
  Result<Block> pinned(std::uint64_t bytes);
  // The host copies when the stream comes to it.
  Status copy_on_host(std::vector<Copy> copies);
  void marked(std::uint64_t mark);
  void reached(std::uint64_t mark);

 private:
  struct Buffer {
    CUdeviceptr address = 0;
    std::uint64_t bytes = 0;
  };
  struct Old {
    CUdeviceptr address;
    std::uint64_t mark;
  };
  // `mark` is the first after its use; 0 while there is none, and kFree when it is over.
  struct Pinned {
    Block block;
    std::uint64_t bytes;
    std::uint64_t mark;
  };
  struct Copies {
    std::vector<Copy> all;
    std::uint64_t mark;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  static void CUDA_CB run(void* copies);

  const Driver& driver_;
  const CUstream stream_;
  std::array<Buffer, kUses> buffers_{};
  std::deque<Old> old_;
  std::vector<Pinned> pinned_;
  std::deque<Copies> copies_;
};

}  // namespace penstock::cuda
#endif
