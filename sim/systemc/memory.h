// The memory behind the card, as a TLM-2.0 target: ranges of this process's memory at bus
// addresses, with latency, chance and faults.
#ifndef PENSTOCK_SIM_SYSTEMC_MEMORY_H_
#define PENSTOCK_SIM_SYSTEMC_MEMORY_H_

#include <tlm_utils/multi_passthrough_target_socket.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <systemc>
#include <tlm>
#include <vector>

#include "penstock/sim/systemc/simulation.h"

namespace penstock::systemc {

// Whether two ranges of bus addresses have a byte in common.
inline bool touch(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

class Memory : public sc_core::sc_module {
 public:
  Memory(const sc_core::sc_module_name& name, const MemoryOptions& options,
         const sc_core::sc_time& cycle);

  // Any number of ports of the card.
  tlm_utils::multi_passthrough_target_socket<Memory> socket;

  // As of Simulation.
  std::uint64_t attach(std::byte* memory, std::uint64_t bytes);
  bool detach(std::uint64_t bus);
  void add_fault(const MemoryFault& fault) { faults_.push_back(fault); }
  void clear_faults() { faults_.clear(); }

  std::uint64_t reads() const { return reads_; }
  std::uint64_t writes() const { return writes_; }

 private:
  struct Range {
    std::byte* memory;
    std::uint64_t bytes;
  };

  void b_transport(int port, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  std::byte* find(std::uint64_t bus, std::uint64_t bytes);
  bool is_faulty(std::uint64_t bus, std::uint64_t bytes, bool write) const;

  const MemoryOptions options_;
  const sc_core::sc_time cycle_;
  std::mt19937_64 random_;
  std::map<std::uint64_t, Range> ranges_;
  std::uint64_t next_ = std::uint64_t{1} << 32;
  std::vector<MemoryFault> faults_;
  std::uint64_t reads_ = 0;
  std::uint64_t writes_ = 0;
};

}  // namespace penstock::systemc
#endif
