#include "penstock/sim/systemc/memory.h"

#include <atomic>
#include <cstring>

namespace penstock::systemc {
namespace {

constexpr std::uint64_t kPage = 4096;

// The last word becomes visible after the rest: whoever sees a completion's sequence sees all of
// it, and a fence's counter is one store.
void store_in_order(std::byte* to, const unsigned char* from, std::uint64_t bytes) {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  const bool aligned = bytes >= kWord && reinterpret_cast<std::uintptr_t>(to + bytes) % kWord == 0;
  if (!aligned) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::uint64_t last;
  std::memcpy(&last, from + bytes - kWord, kWord);
  std::memcpy(to, from, bytes - kWord);
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to + bytes - kWord))
      .store(last, std::memory_order_release);
}

void load_in_order(unsigned char* to, std::byte* from, std::uint64_t bytes) {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  if (bytes != kWord || reinterpret_cast<std::uintptr_t>(from) % kWord != 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::uint64_t word = std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(from))
                                 .load(std::memory_order_acquire);
  std::memcpy(to, &word, kWord);
}

}  // namespace

Memory::Memory(const sc_core::sc_module_name& name, const MemoryOptions& options,
               const sc_core::sc_time& cycle)
    : sc_core::sc_module(name),
      socket("socket"),
      options_(options),
      cycle_(cycle),
      random_(options.seed) {
  socket.register_b_transport(this, &Memory::b_transport);
}

std::uint64_t Memory::attach(std::byte* memory, std::uint64_t bytes) {
  const std::uint64_t bus = next_ + reinterpret_cast<std::uintptr_t>(memory) % kPage;
  ranges_[bus] = {memory, bytes};
  // A page between ranges belongs to nobody, so that running over an end is noticed.
  next_ = (bus + bytes + 2 * kPage - 1) / kPage * kPage;
  return bus;
}

bool Memory::detach(std::uint64_t bus) { return ranges_.erase(bus) == 1; }

std::byte* Memory::find(std::uint64_t bus, std::uint64_t bytes) {
  auto range = ranges_.upper_bound(bus);
  if (range == ranges_.begin()) return nullptr;
  --range;
  const std::uint64_t into = bus - range->first;
  if (into > range->second.bytes || bytes > range->second.bytes - into) return nullptr;
  return range->second.memory + into;
}

bool Memory::is_faulty(std::uint64_t bus, std::uint64_t bytes, bool write) const {
  for (const MemoryFault& fault : faults_) {
    if (write ? !fault.writes : !fault.reads) continue;
    if (bus < fault.base + fault.bytes && fault.base < bus + bytes) return true;
  }
  return false;
}

void Memory::b_transport(int, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const std::uint64_t bus = payload.get_address();
  const std::uint64_t bytes = payload.get_data_length();
  const bool write = payload.is_write();
  std::uint32_t latency = write ? options_.write_latency : options_.read_latency;
  if (options_.jitter != 0)
    latency += static_cast<std::uint32_t>(random_() % (std::uint64_t{options_.jitter} + 1));
  delay += latency * cycle_;
  ++(write ? writes_ : reads_);
  std::byte* memory = find(bus, bytes);
  if (memory == nullptr) {
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return;
  }
  if (is_faulty(bus, bytes, write)) {
    payload.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
    return;
  }
  if (write)
    store_in_order(memory, payload.get_data_ptr(), bytes);
  else
    load_in_order(payload.get_data_ptr(), memory, bytes);
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

}  // namespace penstock::systemc
