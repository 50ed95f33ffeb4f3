// What the host's engines share: validation, windows, coherence, fences and deadlines. An engine is
// a set of kernels on plain pointers.
#ifndef PENSTOCK_ENGINE_HOST_ENGINE_H_
#define PENSTOCK_ENGINE_HOST_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "penstock/descriptor/node_table.h"
#include "penstock/engine/engine.h"

namespace penstock {

// One checked REDUCE: pointers resolved, no destination overlaps a source except exactly.
struct ReduceArguments {
  std::uint32_t type;
  std::uint32_t redop;
  std::uint32_t n_src;
  std::uint32_t n_dst;
  const void* const* src;
  void* const* dst;
  std::uint64_t count;  // elements
  std::uint64_t scale;
  bool stream = false;  // as of Kernels::copy
};

// Where the columns of a checked node table are.
struct TableView {
  penstock_node_table* header;
  std::int64_t* allocatable;
  std::int64_t* requested;
  std::int64_t* scored;
  std::int64_t* gpu;
  std::uint64_t* bits;
  std::int64_t* free;
  std::int64_t* column(std::int64_t* base, std::uint32_t index) const {
    return base + std::size_t{index} * header->capacity;
  }
  std::uint64_t* bit_column(std::uint32_t index) const {
    return bits + std::size_t{index} * (header->capacity / 64);
  }
};
TableView table_view(penstock_node_table* header);

// Kernels have no state that outlives a call, except scratch; one instance per engine, calls from
// several threads. `stream` is a hint that the destinations will not be read soon: stores may go
// past the caches, and are ordered before all that the thread stores after the call.
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual void copy(void* const* dst, std::uint32_t n_dst, const void* src, std::uint64_t bytes,
                    bool stream) const = 0;
  virtual void reduce(const ReduceArguments& arguments) const = 0;
  // One task on a checked table with a checked program; commits when asked.
  virtual void select(const TableView& table, const penstock_program& program,
                      const penstock_task& task, bool commit, penstock_result* result) const = 0;
};

std::unique_ptr<Engine> make_host_engine(Capabilities capabilities,
                                         std::unique_ptr<const Kernels> kernels);

// The two sets of kernels. simd_kernels() picks the widest instructions of this processor;
// simd_target() names them ("AVX3").
std::unique_ptr<const Kernels> scalar_kernels();
std::unique_ptr<const Kernels> simd_kernels();
const char* simd_target();

}  // namespace penstock
#endif
