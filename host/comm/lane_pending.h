// A call on its way through a lane. Private to the lane.
#ifndef PENSTOCK_COMM_LANE_PENDING_H_
#define PENSTOCK_COMM_LANE_PENDING_H_

#include "penstock/comm/lane.h"

namespace penstock {

// Where the others want what a block of this rank mirrors: for the first and for the last pass.
struct Lane::Push {
  std::uint32_t block;
  std::uint32_t participant;
  Slice to;  // of the participant's recv
};

// What depends on a call's numbers and on how its buffers lie to each other, not on where they are.
struct Lane::Prepared {
  Call call;  // buffers null
  bool in_place = false;
  PlanKey key;  // part_bytes of the first pass
  std::uint64_t total_bytes = 0;
  std::uint64_t pass_bytes = 0;
  std::uint64_t note = 0;
  std::vector<Push> first_pushes;
  std::vector<Push> last_pushes;
  std::shared_ptr<const Plan> first;  // of the first pass
  std::uint64_t last_bytes = 0;       // of the last pass
  std::shared_ptr<const Plan> last;
  // Inlined, and every rank reads something of every other.
  bool symmetric = false;
  std::uint64_t own_lines = 0;  // of inlined blocks that this rank writes in a pass, 256 at most
  // By participant: reads blocks that this rank writes.
  std::vector<bool> readers;
};

struct Lane::Pending : Request {
  Call call;
  std::shared_ptr<const Prepared> prepared;
  std::uint64_t done_bytes = 0;               // of one part, by passes run or submitted so far
  const Plan* plan = nullptr;                 // of the pass being run; null before its first step
  const std::vector<Push>* pushes = nullptr;  // of that plan
  std::uint64_t pass_bytes = 0;               // of one part in that pass
  penstock_address offer_send = 0;            // 0: not to be exposed
  penstock_address offer_recv = 0;
  std::uint64_t exposes = 0;  // kNoteOffers bits of this pass
  std::size_t next_step = 0;
  std::uint64_t in_flight = 0;
  bool exposed = false;               // in any pass
  mutable bool read_offered = false;  // used a buffer of another rank
  bool stream = false;
  // Buffers in a device's memory (lane_device.cpp); null where the process reaches them.
  DeviceMemory* send_memory = nullptr;
  DeviceMemory* recv_memory = nullptr;
  DeviceStage* stage = nullptr;  // where the pass finds them instead
  std::unique_ptr<DeviceStage> whole;
  bool stage_began = false;
  bool staged = false;  // this pass was looked at
  bool submitted = false;
  bool finished = false;
  Status result;

  bool is_on_device() const { return send_memory != nullptr || recv_memory != nullptr; }
  bool done() const override { return finished; }
  Status status() const override { return result; }
};

}  // namespace penstock
#endif
