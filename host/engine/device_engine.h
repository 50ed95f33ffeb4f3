// An engine whose kernels run on a device behind a stream: a GPU, or whatever works while the host
// goes on. What it checks, resolves, observes, publishes, signals and waits for is the same code as
// the host engines'; a driver writes a Device and a DeviceStream, which move and fold bytes.
//
// advance() starts what it can and collects what is over, both in order, and never blocks. WAIT,
// SIGNAL and BARRIER are the host's: they take their turn when all before them is over and
// published. So does a descriptor of which the host itself reads something (a list of sources,
// weights, a table, tasks) that one before it is still writing, and what follows an UPDATE or a
// SELECT that commits or has more than 1024 tasks. All else may be on the stream at the same time,
// which keeps the order.
#ifndef PENSTOCK_ENGINE_DEVICE_ENGINE_H_
#define PENSTOCK_ENGINE_DEVICE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "penstock/engine/engine.h"
#include "penstock/engine/host_engine.h"

namespace penstock {

// A checked SELECT, or a piece of one with many tasks. Everything but the table's cells and the
// results is private to the operation, and stays until it is over.
struct SelectArguments {
  // view.header is a private copy of the table's header: read, and left alone. The engine itself
  // writes the header of a table that was committed to.
  TableView view;
  std::byte* table;  // view.header->bytes of them; written where commit is set
  const penstock_program* program;
  const penstock_task* tasks;  // n
  std::uint64_t n;             // 1 to 1024
  bool commit;
  std::byte* results;  // n penstock_result, in the order of the tasks; aligned to 8 bytes
  // For a device that lacks more than its capabilities can say: before the operation is over, and
  // with nothing written, the status, penstock_field and detail of its refusal. They begin as
  // PENSTOCK_OK, PENSTOCK_FIELD_NONE and 0, and most streams leave them alone.
  std::uint32_t* status;
  std::uint32_t* field;
  std::uint64_t* detail;
};

// A checked UPDATE, of the same kind. Each update is in its range by itself; only an ADD can leave
// the bounds of its cell.
struct UpdateArguments {
  TableView view;
  std::byte* table;
  const penstock_update* updates;
  std::uint64_t n;  // at least 1
  // The stream writes these before the operation is over: PENSTOCK_OK, or, with every cell as it
  // was before, PENSTOCK_OUT_OF_RANGE and the index of the first ADD that leaves its bounds, or
  // PENSTOCK_NO_SPACE. They begin as PENSTOCK_INTERNAL. UPDATE_ROWS changes no cell and is done by
  // the engine.
  std::uint32_t* status;
  std::uint64_t* bad_index;
};

// A device's in-order stream for one queue; what is started later sees what was written before it.
// Pointers are the process's addresses (or the device's, where Device::host_reads says so),
// resolved and compared as for Kernels; any alignment, unless a descriptor asks for one. What they
// point to belongs to the operation until a mark after it is reached; the arguments and their
// arrays, `src`, `dst` and `weights` among them, only until the call returns.
//
// Each call starts work and returns. An error means that nothing was started, and is how the
// descriptor completes. no_space and busy while others are on the stream mean later: the engine
// asks again when they are over. One thread at a time.
class DeviceStream {
 public:
  // Waits until the device has let go of all memory.
  virtual ~DeviceStream() = default;
  // bytes is at least 1. A destination may be the source.
  virtual Status copy(void* const* dst, std::uint32_t n_dst, const void* src,
                      std::uint64_t bytes) = 0;
  virtual Status reduce(const ReduceArguments& arguments) = 0;
  // The three below need no more than this where the capabilities leave them out.
  virtual Status outer_step(const OuterStepArguments& arguments);
  virtual Status select(const SelectArguments& arguments);
  virtual Status update(const UpdateArguments& arguments);
  // After all that was started so far: a number above 0 and those before. The work goes to the
  // device now at the latest.
  virtual Result<std::uint64_t> mark() = 0;
  // Whether all before the mark is over and visible to this process. Never blocks.
  // An error of mark() or reached() is the device's: it is lost, has let go of all memory, and what
  // was on the stream fails.
  virtual Result<bool> reached(std::uint64_t mark) = 0;
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  // Called once for a queue, before its first descriptor. The stream goes before the queue, and the
  // queue's pool after both.
  virtual Result<std::unique_ptr<DeviceStream>> open(Queue& queue) = 0;
  // False for memory that the host cannot read, which may hold operands only. A list of sources,
  // weights, a table, a program, tasks or updates there are refused with out_of_range.
  virtual bool host_reads(const void* data, std::uint64_t bytes) const;
  // As Engine::reaches_device_memory.
  virtual bool reaches_device_memory(const void* data) const;
};

// A lost device: accepts() answers io_error with the reason from then on, and every descriptor
// completes with io_error, on all queues. What was cancelled completes when the device has let go.
std::unique_ptr<Engine> make_device_engine(Capabilities capabilities,
                                           std::shared_ptr<Device> device);

}  // namespace penstock
#endif
