// The comm half of the C interface.
#include <memory>
#include <mutex>
#include <string>

#include "comm_handle.h"

using penstock::Call;
using penstock::Code;
using penstock::Collective;
using penstock::Status;
using penstock::sdk::check_size;
using penstock::sdk::guarded;
using penstock::sdk::null_comm;
using penstock::sdk::to_collective;

struct penstock_request {
  penstock_comm* comm;
  std::shared_ptr<penstock::Request> request;
};

namespace {

// The comms of a process share its world, and with it the temporary pool of its job.
penstock::Result<std::shared_ptr<penstock::World>> shared_world() {
  static std::mutex mutex;
  static std::weak_ptr<penstock::World> current;
  static std::uint64_t process = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  penstock::Platform& platform = penstock::Platform::host();
  auto world = current.lock();
  if (world && process == platform.process_generation()) return world;
  PENSTOCK_ASSIGN(penstock::World opened, penstock::World::open(platform));
  world = std::make_shared<penstock::World>(std::move(opened));
  current = world;
  process = platform.process_generation();
  return world;
}

Status join(const penstock_comm_config* given, penstock_comm** out) {
  if (out == nullptr) return Status(Code::invalid_argument, "penstock_comm_init: comm is null");
  *out = nullptr;
  penstock_comm_config config = PENSTOCK_COMM_CONFIG_INIT;
  if (given != nullptr) {
    PENSTOCK_TRY(check_size("penstock_comm_config", given->size, sizeof(config)));
    config = *given;
  }
  if (config.ranks < 0 || config.rank < 0 || (config.ranks > 0 && config.rank >= config.ranks) ||
      (config.ranks == 0 && config.rank != 0)) {
    return penstock::error(Code::invalid_argument,
                           "rank {} of {} ranks; 0 to ranks - 1, or both 0 for the launcher's",
                           config.rank, config.ranks);
  }
  if ((config.flags & ~PENSTOCK_COMM_NEWCOMER) != 0) {
    return penstock::error(
        Code::invalid_argument,
        "penstock_comm_config.flags is {:#x}; only PENSTOCK_COMM_NEWCOMER ({:#x}) "
        "exists",
        config.flags, PENSTOCK_COMM_NEWCOMER);
  }
  const bool newcomer = (config.flags & PENSTOCK_COMM_NEWCOMER) != 0;
  if (newcomer && config.ranks != 0) {
    return penstock::error(Code::invalid_argument,
                           "a newcomer of {} ranks; rank and ranks are 0, the comm that grows "
                           "tells them",
                           config.ranks);
  }
  auto comm = std::make_unique<penstock_comm>();
  PENSTOCK_ASSIGN(comm->world, shared_world());
  PENSTOCK_ASSIGN(penstock::CommConfig inner, comm->world->comm_config());
  if (config.name != nullptr) {
    // Jobs that share a pool do not meet, whatever they name their comms.
    inner.name = config.pool != nullptr || comm->world->temporary()
                     ? config.name
                     : fmt::format("{}.{}", inner.name, config.name);
  }
  if (config.ranks > 0) {
    inner.rank = static_cast<std::uint32_t>(config.rank);
    inner.size = static_cast<std::uint32_t>(config.ranks);
  }
  if (config.engine != nullptr) inner.engine = config.engine;
  if (config.timeout_ms > 0) inner.timeout_ms = config.timeout_ms;
  inner.newcomer = newcomer;
  penstock::Pool* pool = &comm->world->pool();
  if (config.pool != nullptr) {
    penstock::MapOptions options{pool->coherence(), pool->host_id()};
    PENSTOCK_ASSIGN(comm->pool,
                    penstock::Pool::map(penstock::Platform::host(), config.pool, options));
    pool = comm->pool.get();
  }
  PENSTOCK_ASSIGN(comm->comm, penstock::Comm::join(*pool, inner));
  *out = comm.release();
  return {};
}

penstock_status run(penstock_comm* comm, const Call& call) {
  return guarded([&] { return comm == nullptr ? null_comm() : comm->comm->run(call); });
}

Call make_call(Collective collective, const void* send, void* recv, std::uint64_t count,
               penstock_type type, penstock_redop op = PENSTOCK_SUM, std::uint32_t root = 0) {
  Call call;
  call.collective = collective;
  call.send = send;
  call.recv = recv;
  call.count = count;
  call.type = static_cast<std::uint32_t>(type);
  call.redop = static_cast<std::uint32_t>(op);
  call.root = root;
  return call;
}

Call send_call(const void* data, std::uint64_t count, penstock_type type, std::uint32_t peer) {
  Call call = make_call(Collective::send_recv, data, nullptr, count, type, PENSTOCK_SUM, peer);
  call.sender = true;
  return call;
}

penstock::Result<Call> convert(const penstock_call& given) {
  PENSTOCK_TRY(check_size("penstock_call", given.size, sizeof(given)));
  PENSTOCK_ASSIGN(const Collective collective, to_collective(given.collective));
  Call call =
      make_call(collective, given.send, given.recv, given.count, given.type, given.op, given.root);
  call.scale = given.scale;
  call.sender = given.collective == PENSTOCK_SEND;
  return call;
}

}  // namespace

penstock::Result<Collective> penstock::sdk::to_collective(std::int64_t number) {
  static constexpr Collective kCollective[] = {
      Collective::all_reduce, Collective::broadcast,      Collective::reduce,
      Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all,
      Collective::gather,     Collective::scatter,        Collective::send_recv,
      Collective::send_recv,  Collective::barrier};
  const auto index = static_cast<std::size_t>(number);
  if (index >= std::size(kCollective)) {
    return error(Code::invalid_argument, "collective {} does not exist; 0 to {} do", number,
                 std::size(kCollective) - 1);
  }
  return kCollective[index];
}

extern "C" {

penstock_status penstock_comm_init(const penstock_comm_config* config, penstock_comm** comm) {
  return guarded([&] { return join(config, comm); });
}

void penstock_comm_destroy(penstock_comm* comm) { delete comm; }

std::uint32_t penstock_comm_rank(const penstock_comm* comm) { return comm->comm->rank(); }
std::uint32_t penstock_comm_size(const penstock_comm* comm) { return comm->comm->size(); }
const char* penstock_comm_engine(const penstock_comm* comm) {
  return comm->comm->engine().name.c_str();
}

penstock_status penstock_comm_health(penstock_comm* comm) {
  return guarded([&] { return comm == nullptr ? null_comm() : comm->comm->health(); });
}

penstock_status penstock_comm_abort(penstock_comm* comm, const char* reason) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return null_comm();
    comm->comm->abort(reason == nullptr ? "no reason given" : reason);
    return {};
  });
}

penstock_status penstock_all_reduce(penstock_comm* comm, const void* send, void* recv,
                                    std::uint64_t count, penstock_type type, penstock_redop op) {
  return run(comm, make_call(Collective::all_reduce, send, recv, count, type, op));
}
penstock_status penstock_broadcast(penstock_comm* comm, const void* send, void* recv,
                                   std::uint64_t count, penstock_type type, std::uint32_t root) {
  return run(comm, make_call(Collective::broadcast, send, recv, count, type, PENSTOCK_SUM, root));
}
penstock_status penstock_reduce(penstock_comm* comm, const void* send, void* recv,
                                std::uint64_t count, penstock_type type, penstock_redop op,
                                std::uint32_t root) {
  return run(comm, make_call(Collective::reduce, send, recv, count, type, op, root));
}
penstock_status penstock_all_gather(penstock_comm* comm, const void* send, void* recv,
                                    std::uint64_t count, penstock_type type) {
  return run(comm, make_call(Collective::all_gather, send, recv, count, type));
}
penstock_status penstock_reduce_scatter(penstock_comm* comm, const void* send, void* recv,
                                        std::uint64_t count, penstock_type type,
                                        penstock_redop op) {
  return run(comm, make_call(Collective::reduce_scatter, send, recv, count, type, op));
}
penstock_status penstock_all_to_all(penstock_comm* comm, const void* send, void* recv,
                                    std::uint64_t count, penstock_type type) {
  return run(comm, make_call(Collective::all_to_all, send, recv, count, type));
}
penstock_status penstock_gather(penstock_comm* comm, const void* send, void* recv,
                                std::uint64_t count, penstock_type type, std::uint32_t root) {
  return run(comm, make_call(Collective::gather, send, recv, count, type, PENSTOCK_SUM, root));
}
penstock_status penstock_scatter(penstock_comm* comm, const void* send, void* recv,
                                 std::uint64_t count, penstock_type type, std::uint32_t root) {
  return run(comm, make_call(Collective::scatter, send, recv, count, type, PENSTOCK_SUM, root));
}
penstock_status penstock_send(penstock_comm* comm, const void* data, std::uint64_t count,
                              penstock_type type, std::uint32_t peer) {
  return run(comm, send_call(data, count, type, peer));
}
penstock_status penstock_recv(penstock_comm* comm, void* data, std::uint64_t count,
                              penstock_type type, std::uint32_t peer) {
  return run(comm,
             make_call(Collective::send_recv, nullptr, data, count, type, PENSTOCK_SUM, peer));
}
penstock_status penstock_barrier(penstock_comm* comm) { return run(comm, Call()); }

penstock_status penstock_start(penstock_comm* comm, const penstock_call* call,
                               penstock_request** request) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return null_comm();
    if (call == nullptr || request == nullptr) {
      return Status(Code::invalid_argument, "penstock_start: call or request is null");
    }
    *request = nullptr;
    PENSTOCK_ASSIGN(const Call converted, convert(*call));
    auto handle = std::make_unique<penstock_request>();
    handle->comm = comm;
    PENSTOCK_ASSIGN(handle->request, comm->comm->start(converted));
    *request = handle.release();
    return {};
  });
}

penstock_status penstock_test(penstock_request* request, int* done) {
  return guarded([&]() -> Status {
    if (request == nullptr || done == nullptr) {
      return Status(Code::invalid_argument, "penstock_test: request or done is null");
    }
    *done = 0;
    auto result = request->comm->comm->test(*request->request);
    *done = !result.ok() || *result ? 1 : 0;
    return result.status();
  });
}

penstock_status penstock_wait(penstock_request* request) {
  return guarded([&]() -> Status {
    if (request == nullptr) return Status(Code::invalid_argument, "the request is null");
    return request->comm->comm->wait(*request->request);
  });
}

void penstock_request_free(penstock_request* request) { delete request; }
}
