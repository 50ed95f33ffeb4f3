#include "penstock/comm/call_check.h"

#include "penstock/comm/lane.h"

namespace penstock {

BufferBytes buffer_bytes(const Call& call, std::uint32_t rank, std::uint32_t size) {
  const std::uint64_t part = Lane::part_bytes(call);
  const bool root = rank == call.root;
  switch (call.collective) {
    case Collective::all_reduce:
      return {part, part};
    case Collective::broadcast:
      return {root ? part : 0, part};
    case Collective::reduce:
      return {part, root ? part : 0};
    case Collective::all_gather:
      return {part, part * size};
    case Collective::reduce_scatter:
      return {part * size, part};
    case Collective::all_to_all:
      return {part * size, part * size};
    case Collective::gather:
      return {part, root ? part * size : 0};
    case Collective::scatter:
      return {root ? part * size : 0, part};
    case Collective::send_recv:
      return {call.sender ? part : 0, call.sender ? 0 : part};
    case Collective::barrier:
      return {};
  }
  return {};
}

namespace {

// The offset of recv from send that this collective's "in place" means at this rank.
std::int64_t in_place_offset(const Call& call, std::uint32_t rank) {
  const auto own = static_cast<std::int64_t>(Lane::part_bytes(call) * rank);
  switch (call.collective) {
    case Collective::all_gather:
    case Collective::gather:
      return -own;
    case Collective::reduce_scatter:
    case Collective::scatter:
      return own;
    default:
      return 0;
  }
}

Status check_buffers(const Call& call, std::uint32_t rank, std::uint32_t size) {
  const char* name = collective_name(call.collective);
  const BufferBytes bytes = buffer_bytes(call, rank, size);
  if (bytes.send > 0 && call.send == nullptr) {
    return error(Code::invalid_argument, "{}: send buffer is null; {} bytes are needed", name,
                 bytes.send);
  }
  if (bytes.recv > 0 && call.recv == nullptr) {
    return error(Code::invalid_argument, "{}: receive buffer is null; {} bytes are needed", name,
                 bytes.recv);
  }
  if (bytes.send == 0 || bytes.recv == 0) return {};
  const auto send = reinterpret_cast<std::uintptr_t>(call.send);
  const auto recv = reinterpret_cast<std::uintptr_t>(call.recv);
  const bool overlap = send < recv + bytes.recv && recv < send + bytes.send;
  const auto distance = static_cast<std::int64_t>(recv - send);
  if (overlap && distance != in_place_offset(call, rank)) {
    return error(
        Code::invalid_argument,
        "{}: buffers overlap with the receive buffer {} bytes after the send buffer; apart "
        "or in place ({} bytes) would be right",
        name, distance, in_place_offset(call, rank));
  }
  return {};
}

}  // namespace

Status check_call(const Call& call, std::uint32_t rank, std::uint32_t size) {
  if (static_cast<int>(call.collective) >= kCollectives) {
    return error(Code::invalid_argument, "collective {} does not exist; 0 to {} do",
                 static_cast<int>(call.collective), kCollectives - 1);
  }
  if (call.collective == Collective::barrier) return {};
  const char* name = collective_name(call.collective);
  if (call.type >= PENSTOCK_TYPE_COUNT) {
    return error(Code::invalid_argument, "{}: type {} does not exist; 0 to {} do", name, call.type,
                 PENSTOCK_TYPE_COUNT - 1);
  }
  if (reduces(call.collective)) {
    if (call.redop >= PENSTOCK_REDOP_COUNT) {
      return error(Code::invalid_argument, "{}: operation {} does not exist; 0 to {} do", name,
                   call.redop, PENSTOCK_REDOP_COUNT - 1);
    }
    if (call.scale != 0 && call.redop != PENSTOCK_PREMUL_SUM) {
      return error(Code::invalid_argument, "{}: a scale is given, but the operation is {}", name,
                   penstock_redop_name(call.redop));
    }
  }
  if ((has_root(call.collective) || call.collective == Collective::send_recv) &&
      call.root >= size) {
    return error(Code::invalid_argument, "{}: {} {} is out of range; the comm has ranks 0 to {}",
                 name, call.collective == Collective::send_recv ? "peer" : "root", call.root,
                 size - 1);
  }
  if (call.count > PENSTOCK_MAX_COUNT / size) {
    return error(Code::invalid_argument, "{}: count {} is too large; at most {} with {} ranks",
                 name, call.count, PENSTOCK_MAX_COUNT / size, size);
  }
  return check_buffers(call, rank, size);
}

}  // namespace penstock
