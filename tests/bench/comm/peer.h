// A library under test. The measuring loop (measure.h) knows libraries only as this.
#ifndef PENSTOCK_TESTS_BENCH_COMM_PEER_H_
#define PENSTOCK_TESTS_BENCH_COMM_PEER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "problem.h"

namespace penstock::bench {

enum class Buffer { send, recv };

// Memory of this process alone, in huge pages where the system has them. Zeroed; never freed.
void* private_memory(std::size_t bytes);

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;

  // One buffer of each kind for the whole measurement.
  virtual void* allocate(Buffer, std::size_t bytes) { return private_memory(bytes); }
  // Gets ready for the problem and names the ways in which this library can do it; none: it cannot.
  // The same on every rank.
  virtual std::vector<std::string> prepare(const Problem& problem, void* send, void* recv) = 0;
  virtual void select(std::size_t /*variant*/) {}
  // One blocking call. A failure ends the process with a message.
  virtual void run() = 0;

  // Helper threads need the CPU while a rank waits for others outside of a call.
  virtual bool has_helpers() const { return false; }
};

}  // namespace penstock::bench
#endif
