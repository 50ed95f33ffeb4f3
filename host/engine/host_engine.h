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

// One checked REDUCE: pointers resolved, no destination overlaps a source except exactly, and that
// only where their elements have one size.
struct ReduceArguments {
  static constexpr std::uint32_t kSameType = PENSTOCK_TYPE_COUNT;

  std::uint32_t type;
  std::uint32_t redop;
  std::uint32_t n_src;
  std::uint32_t n_dst;
  const void* const* src;
  void* const* dst;
  std::uint64_t count;  // elements
  std::uint64_t scale;
  bool stream = false;                 // as of Kernels::copy
  std::uint32_t out_type = kSameType;  // of the result, where it is another than `type`
  std::uint32_t block = 0;             // of what INT8 means in type and out_type
  // Null, or n_src weights in the fold type, none of them zero: `scale` means nothing then.
  const void* weights = nullptr;

  std::uint32_t result_type() const { return out_type == kSameType ? type : out_type; }
  bool converts() const { return result_type() != type; }
  // Beyond what one element type by itself needs: block-scaled, weighted or converted.
  bool fused() const { return converts() || block != 0 || weights != nullptr; }
  // With one source, most reductions are a copy of the bits.
  bool copies() const {
    return n_src == 1 && redop != PENSTOCK_PREMUL_SUM && !converts() && weights == nullptr;
  }
  std::uint64_t bytes() const { return penstock_operand_bytes(type, block, count); }
};

// One checked OUTER_STEP. Pointers need no alignment; nothing overlaps.
struct OuterStepArguments {
  std::uint32_t type;
  std::uint32_t block;
  std::uint32_t n_src;
  const void* const* src;
  void* momentum;    // count f32
  void* parameters;  // count f32
  std::uint64_t count;
  float learning_rate;
  float momentum_factor;
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
  std::int32_t* domain;
  std::int32_t* count;
  const double* logs;  // capacity + 1 of them, if there are domain columns
  std::int64_t* column(std::int64_t* base, std::uint32_t index) const {
    return base + std::size_t{index} * header->capacity;
  }
  std::uint64_t* bit_column(std::uint32_t index) const {
    return bits + std::size_t{index} * (header->capacity / 64);
  }
  std::int32_t* domain_column(std::uint32_t index) const {
    return domain + std::size_t{index} * header->capacity;
  }
  std::int32_t* count_column(std::uint32_t index) const {
    return count + std::size_t{index} * header->capacity;
  }
  // The row's domain in a domain column or PENSTOCK_ROW_DOMAIN, -1 if it has none; what a damaged
  // pool holds is none.
  std::int32_t domain_of(std::uint32_t index, std::uint32_t row) const {
    if (index == PENSTOCK_ROW_DOMAIN) return static_cast<std::int32_t>(row);
    const std::int32_t cell = domain_column(index)[row];
    return cell >= 0 && static_cast<std::uint32_t>(cell) < header->capacity ? cell : -1;
  }
};
TableView table_view(penstock_node_table* header);
// Of columns that lie at `data` as `header`, which may be a copy elsewhere, says.
TableView table_view(penstock_node_table* header, std::byte* data);

// Kernels have no state that outlives a call, except scratch; one instance per engine, calls from
// several threads. `stream` is a hint that the destinations will not be read soon: stores may go
// past the caches, and are ordered before all that the thread stores after the call.
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual void copy(void* const* dst, std::uint32_t n_dst, const void* src, std::uint64_t bytes,
                    bool stream) const = 0;
  virtual void reduce(const ReduceArguments& arguments) const = 0;
  virtual void outer_step(const OuterStepArguments& arguments) const = 0;
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
