// Collective calls that simulated ranks make, with their buffers and the check of what came out.
#ifndef PENSTOCK_SIM_INCOHERENT_EXERCISE_H_
#define PENSTOCK_SIM_INCOHERENT_EXERCISE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sim/incoherent/scenario.h"

namespace penstock::sim {

// One call, the same on every rank.
struct CallSpec {
  std::uint64_t id = 0;  // its inputs follow from it
  Collective collective = Collective::barrier;
  std::uint64_t count = 0;
  std::uint32_t type = PENSTOCK_INT32;
  std::uint32_t redop = PENSTOCK_SUM;
  std::uint32_t root = 0;  // of send_recv the sender
  std::uint32_t peer = 0;  // of send_recv the receiver
  bool in_place = false;
};
CallSpec draw_call(Random& random, Collective collective, std::uint32_t ranks, std::uint64_t id);
Collective draw_collective(Random& random);
std::string describe(const CallSpec& spec);

// Memory of one rank with guards on both sides, private or in the pool.
class CallBuffer {
 public:
  // `elements` of `element_bytes`. In the pool if asked for and there is room.
  CallBuffer(Pool& pool, std::uint64_t bytes, std::uint32_t element_bytes, bool in_pool,
             Random& random);
  ~CallBuffer();
  CallBuffer(const CallBuffer&) = delete;
  CallBuffer& operator=(const CallBuffer&) = delete;
  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  bool guards_are_whole() const;

 private:
  Pool& pool_;
  Region region_;  // bytes 0: private
  std::unique_ptr<std::byte[]> own_;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_;
};

// What the ranks of a run share outside of the simulated world: how many have come to a barrier.
struct Arrivals {
  std::map<std::uint64_t, std::uint32_t> of_call;  // by CallSpec::id
};

// A call of one rank: prepared, made by whoever owns it, then verified.
class PreparedCall {
 public:
  PreparedCall(Run& run, Pool& pool, const Comm& comm, const CallSpec& spec, Arrivals& arrivals,
               Random& own);
  const Call& call() const { return call_; }
  bool takes_part() const { return takes_part_; }
  Status verify() const;

 private:
  std::uint64_t input(std::uint32_t rank, std::uint64_t index) const;
  void make_buffers(Pool& pool, Random& own);

  Run& run_;
  const std::uint32_t rank_;
  const std::uint32_t size_;
  const CallSpec spec_;
  Arrivals& arrivals_;
  Call call_;
  bool takes_part_ = true;
  std::unique_ptr<CallBuffer> send_;
  std::unique_ptr<CallBuffer> recv_;  // null when in place
  std::vector<std::byte> sent_;       // what send_ held before the call
  std::vector<std::byte> received_;   // what recv_ (or send_, in place) must hold afterwards
};

// One rank makes these calls one after another, blocking or not, as its own chance has it.
Status make_calls(Run& run, Pool& pool, Comm& comm, const std::vector<CallSpec>& specs,
                  Arrivals& arrivals);
// The same with several calls on their way at once.
Status make_calls_overlapping(Run& run, Pool& pool, Comm& comm, const std::vector<CallSpec>& specs,
                              Arrivals& arrivals);
// Calls for a comm of this size, the same on every rank that asks. Ids begin at first_id.
std::vector<CallSpec> draw_calls(Random& random, std::uint32_t count, std::uint32_t size,
                                 std::uint64_t first_id, const Collective* only = nullptr);
CommConfig draw_comm(Run& run, std::uint32_t rank, const std::string& name);

}  // namespace penstock::sim
#endif
