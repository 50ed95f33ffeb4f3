// Executing one checked descriptor with a set of kernels: what stands between the advance loop and
// plain pointers. Internal to host/engine.
#ifndef PENSTOCK_ENGINE_EXECUTE_H_
#define PENSTOCK_ENGINE_EXECUTE_H_

#include <cstddef>
#include <cstdint>

#include "penstock/engine/host_engine.h"

namespace penstock {

// What a completion says, without cookie and sequence.
struct Outcome {
  std::uint32_t status = PENSTOCK_OK;
  std::uint32_t field = PENSTOCK_FIELD_NONE;
  std::uint64_t detail = 0;
  bool ok() const { return status == PENSTOCK_OK; }
};

// The queue's memory as the kernels see it. Sources are observed before they are handed out and
// destinations published on request, where they lie in a pool that needs it, however they are
// addressed.
class Access {
 public:
  explicit Access(const Queue& queue);

  // Null if the queue's windows refuse the access.
  std::byte* resolve(penstock_address address, std::uint64_t bytes, bool for_write) const {
    return queue_.resolve(address, bytes, for_write);
  }
  // Resolved for reading, and observed.
  const std::byte* source(penstock_address address, std::uint64_t bytes) const;
  // Resolved for reading and writing, and observed.
  std::byte* shared(penstock_address address, std::uint64_t bytes) const;

  void observe(const void* data, std::uint64_t bytes) const;
  void publish(const void* data, std::uint64_t bytes) const;

 private:
  bool needs_care(const void* data, std::uint64_t bytes) const;

  const Queue& queue_;
  const Pool* software_pool_;  // null where nothing has to be flushed
};

bool overlaps(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes);

Outcome execute_copy(const Access& access, const Kernels& kernels, const penstock_descriptor& d);
Outcome execute_reduce(const Access& access, const Kernels& kernels, const penstock_descriptor& d);
Outcome execute_outer_step(const Access& access, const Kernels& kernels,
                           const penstock_descriptor& d);
Outcome execute_select(const Access& access, const Kernels& kernels, const penstock_descriptor& d);
Outcome execute_update(const Access& access, const penstock_descriptor& d);

}  // namespace penstock
#endif
