#include "fault_calls.h"

#include <vector>

namespace penstock::test {
namespace {

// What rank r holds at index i of its part for rank p. Small, so that sums stay in 32 bits.
std::int32_t element(std::uint32_t rank, std::uint32_t part, std::uint64_t index, int turn) {
  return static_cast<std::int32_t>((rank + 1) * 1000 + part * 100 + index % 97 +
                                   static_cast<std::uint64_t>(turn));
}

struct Shape {
  std::uint64_t send_parts;
  std::uint64_t recv_parts;
};

Shape shape_of(Collective collective, std::uint64_t size) {
  switch (collective) {
    case Collective::all_gather:
    case Collective::gather:
      return {1, size};
    case Collective::reduce_scatter:
    case Collective::scatter:
      return {size, 1};
    case Collective::all_to_all:
      return {size, size};
    default:
      return {1, 1};
  }
}

// What `part` of the result holds at index i, on `rank`.
std::int32_t expected(Collective collective, std::uint32_t rank, std::uint32_t size,
                      std::uint32_t root, std::uint32_t part, std::uint64_t index, int turn) {
  std::int32_t sum = 0;
  switch (collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      for (std::uint32_t r = 0; r < size; ++r) sum += element(r, 0, index, turn);
      return sum;
    case Collective::reduce_scatter:
      for (std::uint32_t r = 0; r < size; ++r) sum += element(r, rank, index, turn);
      return sum;
    case Collective::broadcast:
      return element(root, 0, index, turn);
    case Collective::all_gather:
    case Collective::gather:
      return element(part, 0, index, turn);
    case Collective::scatter:
      return element(root, rank, index, turn);
    case Collective::all_to_all:
      return element(part, rank, index, turn);
    case Collective::send_recv:
      return element((rank + size - 1) % size, 0, index, turn);
    default:
      return 0;
  }
}

bool has_result(Collective collective, std::uint32_t rank, std::uint32_t root) {
  if (collective == Collective::barrier) return false;
  return (collective != Collective::reduce && collective != Collective::gather) || rank == root;
}

Status finish(Comm& comm, const Call& call, bool blocking) {
  if (blocking) return comm.run(call);
  PENSTOCK_ASSIGN(std::shared_ptr<Request> request, comm.start(call));
  for (int polls = 0; polls < 50; ++polls) {
    PENSTOCK_ASSIGN(const bool done, comm.test(*request));
    if (done) return {};
  }
  return comm.wait(*request);
}

}  // namespace

Status call_and_check(Comm& comm, Collective collective, std::uint64_t count, int turn,
                      bool blocking, std::string* wrong) {
  const std::uint32_t size = comm.size();
  const std::uint32_t rank = comm.rank();
  const Shape shape = shape_of(collective, size);
  std::vector<std::int32_t> send(shape.send_parts * count);
  for (std::uint64_t i = 0; i < send.size(); ++i) {
    send[i] = element(rank, static_cast<std::uint32_t>(i / count), i % count, turn);
  }
  std::vector<std::int32_t> recv(shape.recv_parts * count, -1);
  Call call;
  call.collective = collective;
  call.send = send.data();
  call.recv = recv.data();
  call.count = count;
  call.type = PENSTOCK_INT32;
  call.root = static_cast<std::uint32_t>(turn) % size;
  if (collective == Collective::barrier) {
    call = Call();
  } else if (collective == Collective::send_recv) {
    Call to_next = call;
    to_next.sender = true;
    to_next.root = (rank + 1) % size;
    to_next.recv = nullptr;
    call.root = (rank + size - 1) % size;
    call.send = nullptr;
    PENSTOCK_ASSIGN(std::shared_ptr<Request> sent, comm.start(to_next));
    PENSTOCK_TRY(finish(comm, call, blocking));
    PENSTOCK_TRY(comm.wait(*sent));
  }
  if (collective != Collective::send_recv) PENSTOCK_TRY(finish(comm, call, blocking));
  if (!has_result(collective, rank, call.root)) return {};
  for (std::uint64_t i = 0; i < recv.size(); ++i) {
    const std::int32_t want = expected(collective, rank, size, call.root,
                                       static_cast<std::uint32_t>(i / count), i % count, turn);
    if (recv[i] == want) continue;
    *wrong = fmt::format("turn {}: {} gave {} at {}, not {}", turn, collective_name(collective),
                         recv[i], i, want);
    return {};
  }
  return {};
}

}  // namespace penstock::test
