// Penstock: collectives over a memory pool. The C++ interface: penstock.h with types, ownership and
// exceptions. Header-only over the C interface, so that it depends on no compiler's C++ ABI.
//
//   penstock::world world;                            // rank and size come from the launcher
//   std::vector<float> grad(1 << 20, float(world.rank()));
//   world.all_reduce(grad.data(), grad.data(), grad.size());
//
// Every failure throws penstock::failure, which carries the status and the sentence.
#ifndef PENSTOCK_PENSTOCK_HPP_
#define PENSTOCK_PENSTOCK_HPP_

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "penstock/cluster.h"
#include "penstock/penstock.h"

namespace penstock {

class failure : public std::runtime_error {
 public:
  explicit failure(penstock_status status)
      : std::runtime_error(std::string(penstock_status_name(status)) + ": " +
                           penstock_last_error()),
        status_(status) {}
  penstock_status status() const noexcept { return status_; }

 private:
  penstock_status status_;
};

inline void check(penstock_status status) {
  if (status != PENSTOCK_OK) throw failure(status);
}

// Sixteen- and eight-bit floats as storage; convert with whatever library you use.
struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};
struct f8e4m3 {
  std::uint8_t bits;
};
struct f8e5m2 {
  std::uint8_t bits;
};

// The penstock_type of a C++ type.
template <typename T>
constexpr penstock_type type_of() {
  if constexpr (std::is_same_v<T, float>)
    return PENSTOCK_F32;
  else if constexpr (std::is_same_v<T, double>)
    return PENSTOCK_F64;
  else if constexpr (std::is_same_v<T, f16>)
    return PENSTOCK_F16;
  else if constexpr (std::is_same_v<T, bf16>)
    return PENSTOCK_BF16;
  else if constexpr (std::is_same_v<T, f8e4m3>)
    return PENSTOCK_F8E4M3;
  else if constexpr (std::is_same_v<T, f8e5m2>)
    return PENSTOCK_F8E5M2;
  else {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8),
                  "an element is an integer of 1, 4 or 8 bytes, float, double, or one of "
                  "penstock::f16, bf16, f8e4m3, f8e5m2");
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1)
      return is_signed ? PENSTOCK_INT8 : PENSTOCK_UINT8;
    else if constexpr (sizeof(T) == 4)
      return is_signed ? PENSTOCK_INT32 : PENSTOCK_UINT32;
    else
      return is_signed ? PENSTOCK_INT64 : PENSTOCK_UINT64;
  }
}

// The bit pattern of a pre-multiplier for elements of type T.
template <typename T>
std::uint64_t scale_bits(double factor) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(factor));
  } else if constexpr (std::is_same_v<T, double>) {
    std::uint64_t bits;
    std::memcpy(&bits, &factor, sizeof bits);
    return bits;
  } else {
    const float narrow = static_cast<float>(factor);
    std::uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return bits;
  }
}

// A call on its way. Waits in its destructor unless it is done, because the buffers are in use.
class request {
 public:
  explicit request(penstock_request* handle) : handle_(handle) {}
  request(request&&) noexcept = default;
  request& operator=(request&&) = delete;
  ~request() {
    if (handle_) (void)penstock_wait(handle_.get());
  }
  bool test() {
    int done = 0;
    check(penstock_test(handle_.get(), &done));
    return done != 0;
  }
  void wait() { check(penstock_wait(handle_.get())); }

 private:
  struct free {
    void operator()(penstock_request* handle) const { penstock_request_free(handle); }
  };
  std::unique_ptr<penstock_request, free> handle_;
};

// A group of ranks; see penstock.h for what counts and buffers mean.
class comm {
 public:
  comm() : comm(nullptr) {}
  explicit comm(const penstock_comm_config& config) : comm(&config) {}
  // The ranks of the launcher under another name, so that two comms can be used at once.
  explicit comm(const std::string& name) : comm(named(name)) {}

  std::uint32_t rank() const { return penstock_comm_rank(handle_.get()); }
  std::uint32_t size() const { return penstock_comm_size(handle_.get()); }
  std::string engine() const { return penstock_comm_engine(handle_.get()); }
  void abort(const std::string& reason) {
    check(penstock_comm_abort(handle_.get(), reason.c_str()));
  }
  void health() { check(penstock_comm_health(handle_.get())); }
  std::uint64_t epoch() const { return penstock_comm_epoch(handle_.get()); }

  // Comms out of this one; see penstock.h. A part of a negative color is no comm (operator bool).
  void revoke() { check(penstock_comm_revoke(handle_.get())); }
  comm shrink() { return comm(made(&penstock_comm_shrink)); }
  comm grow(std::uint32_t ranks) { return comm(made(&penstock_comm_grow, ranks)); }
  comm split(std::int32_t color, std::int32_t key = 0) {
    return comm(made(&penstock_comm_split, color, key));
  }
  explicit operator bool() const { return handle_ != nullptr; }

  template <typename T>
  void all_reduce(const T* send, T* recv, std::uint64_t count, penstock_redop op = PENSTOCK_SUM) {
    check(penstock_all_reduce(handle_.get(), send, recv, count, type_of<T>(), op));
  }
  template <typename T>
  void broadcast(const T* send, T* recv, std::uint64_t count, std::uint32_t root = 0) {
    check(penstock_broadcast(handle_.get(), send, recv, count, type_of<T>(), root));
  }
  template <typename T>
  void reduce(const T* send, T* recv, std::uint64_t count, penstock_redop op = PENSTOCK_SUM,
              std::uint32_t root = 0) {
    check(penstock_reduce(handle_.get(), send, recv, count, type_of<T>(), op, root));
  }
  template <typename T>
  void all_gather(const T* send, T* recv, std::uint64_t count) {
    check(penstock_all_gather(handle_.get(), send, recv, count, type_of<T>()));
  }
  template <typename T>
  void reduce_scatter(const T* send, T* recv, std::uint64_t count,
                      penstock_redop op = PENSTOCK_SUM) {
    check(penstock_reduce_scatter(handle_.get(), send, recv, count, type_of<T>(), op));
  }
  template <typename T>
  void all_to_all(const T* send, T* recv, std::uint64_t count) {
    check(penstock_all_to_all(handle_.get(), send, recv, count, type_of<T>()));
  }
  template <typename T>
  void gather(const T* send, T* recv, std::uint64_t count, std::uint32_t root = 0) {
    check(penstock_gather(handle_.get(), send, recv, count, type_of<T>(), root));
  }
  template <typename T>
  void scatter(const T* send, T* recv, std::uint64_t count, std::uint32_t root = 0) {
    check(penstock_scatter(handle_.get(), send, recv, count, type_of<T>(), root));
  }
  template <typename T>
  void send(const T* data, std::uint64_t count, std::uint32_t peer) {
    check(penstock_send(handle_.get(), data, count, type_of<T>(), peer));
  }
  template <typename T>
  void recv(T* data, std::uint64_t count, std::uint32_t peer) {
    check(penstock_recv(handle_.get(), data, count, type_of<T>(), peer));
  }
  void barrier() { check(penstock_barrier(handle_.get())); }
  // With the partner of this round; bit r of `absent`: without rank r.
  template <typename T>
  void pairwise_average(std::uint64_t seed, std::uint64_t round, T* data, std::uint64_t count,
                        std::uint64_t absent = 0) {
    check(penstock_pairwise_average(handle_.get(), seed, round, absent, data, count, type_of<T>()));
  }
  // Of one penstock_collective, or of all; zero unless PENSTOCK_STATS is set.
  penstock_statistics statistics(std::int32_t collective = PENSTOCK_ALL_COLLECTIVES) const {
    penstock_statistics numbers{};
    numbers.size = sizeof numbers;
    check(penstock_comm_statistics(handle_.get(), collective, &numbers));
    return numbers;
  }

  // Any call without blocking.
  request start(const penstock_call& call) {
    penstock_request* handle = nullptr;
    check(penstock_start(handle_.get(), &call, &handle));
    return request(handle);
  }
  template <typename T>
  request start_all_reduce(const T* send, T* recv, std::uint64_t count,
                           penstock_redop op = PENSTOCK_SUM) {
    penstock_call call = PENSTOCK_CALL_INIT;
    call.collective = PENSTOCK_ALL_REDUCE;
    call.type = type_of<T>();
    call.op = op;
    call.send = send;
    call.recv = recv;
    call.count = count;
    return start(call);
  }

  penstock_comm* get() const { return handle_.get(); }

 private:
  struct owned {
    penstock_comm* handle;
  };
  explicit comm(owned given) : handle_(given.handle) {}
  template <typename Make, typename... Rest>
  owned made(Make make, Rest... rest) {
    penstock_comm* handle = nullptr;
    check(make(handle_.get(), rest..., &handle));
    return {handle};
  }
  explicit comm(const penstock_comm_config* config) {
    penstock_comm* handle = nullptr;
    check(penstock_comm_init(config, &handle));
    handle_.reset(handle);
  }
  static penstock_comm_config named(const std::string& name) {
    penstock_comm_config config = PENSTOCK_COMM_CONFIG_INIT;
    config.name = name.c_str();
    return config;
  }
  struct destroy {
    void operator()(penstock_comm* handle) const { penstock_comm_destroy(handle); }
  };
  std::unique_ptr<penstock_comm, destroy> handle_;
};

// Memory that every rank of a comm exposes to the others; see penstock.h. Goes before its comm.
class window {
 public:
  window(const comm& members, const penstock_window_config& config) {
    penstock_window* handle = nullptr;
    check(penstock_window_make(members.get(), &config, &handle));
    handle_.reset(handle);
  }
  // Of `bytes` and nothing else.
  window(const comm& members, std::uint64_t bytes) : window(members, of_bytes(bytes)) {}

  void* data() { return penstock_window_data(handle_.get()); }
  std::uint64_t bytes(std::uint32_t rank) const {
    return penstock_window_bytes(handle_.get(), rank);
  }
  void put(std::uint32_t target, std::uint64_t offset, const void* data, std::uint64_t bytes) {
    check(penstock_window_put(handle_.get(), target, offset, data, bytes));
  }
  void get(std::uint32_t source, std::uint64_t offset, void* data, std::uint64_t bytes) {
    check(penstock_window_get(handle_.get(), source, offset, data, bytes));
  }
  void publish(std::uint64_t offset, std::uint64_t bytes) {
    check(penstock_window_publish(handle_.get(), offset, bytes));
  }
  void observe(std::uint64_t offset, std::uint64_t bytes) {
    check(penstock_window_observe(handle_.get(), offset, bytes));
  }
  void signal(std::uint32_t target, std::uint32_t slot, std::uint64_t value) {
    check(penstock_window_signal(handle_.get(), target, slot, value));
  }
  void wait_signal(std::uint32_t source, std::uint32_t slot, std::uint64_t value,
                   std::uint32_t timeout_ms = 0) {
    check(penstock_window_wait_signal(handle_.get(), source, slot, value, timeout_ms));
  }
  // The rank whose counter was there first.
  std::uint32_t wait_any(std::uint32_t slot, std::uint64_t value, std::uint32_t timeout_ms = 0) {
    std::uint32_t source = 0;
    check(penstock_window_wait_any(handle_.get(), slot, value, timeout_ms, &source));
    return source;
  }
  // Returns the version.
  std::uint64_t publish_block(std::uint32_t slot, std::uint64_t key, const void* data,
                              std::uint64_t bytes) {
    std::uint64_t version = 0;
    check(penstock_window_publish_block(handle_.get(), slot, key, data, bytes, &version));
    return version;
  }
  penstock_block fetch_block(std::uint32_t owner, std::uint32_t slot, std::uint64_t min_version,
                             void* data, std::uint64_t capacity, std::uint32_t timeout_ms = 0) {
    penstock_block block = PENSTOCK_BLOCK_INIT;
    check(penstock_window_fetch_block(handle_.get(), owner, slot, min_version, data, capacity,
                                      timeout_ms, &block));
    return block;
  }
  penstock_block find_block(std::uint64_t key) {
    penstock_block block = PENSTOCK_BLOCK_INIT;
    check(penstock_window_find_block(handle_.get(), key, &block));
    return block;
  }

  penstock_window* get() const { return handle_.get(); }

 private:
  static penstock_window_config of_bytes(std::uint64_t bytes) {
    penstock_window_config config = PENSTOCK_WINDOW_CONFIG_INIT;
    config.bytes = bytes;
    return config;
  }
  struct destroy {
    void operator()(penstock_window* handle) const { penstock_window_destroy(handle); }
  };
  std::unique_ptr<penstock_window, destroy> handle_;
};

// The comm of all ranks that the launcher started.
using world = comm;

// A Kubernetes cluster and kube-scheduler's decisions on it; objects are JSON texts as in
// penstock/cluster.h, which says more.
class cluster {
 public:
  // Empty; `configuration` is the path of a KubeSchedulerConfiguration.
  cluster() : cluster(penstock_cluster_config(PENSTOCK_CLUSTER_CONFIG_INIT)) {}
  explicit cluster(const penstock_cluster_config& config) {
    penstock_cluster* handle = nullptr;
    check(penstock_cluster_create(&config, &handle));
    handle_.reset(handle);
  }
  // As `kubectl get nodes,pods -A -o json` printed it into a file.
  explicit cluster(const std::string& path, const std::string& policy = "default") {
    penstock_cluster* handle = nullptr;
    check(penstock_cluster_read(path.c_str(), policy.c_str(), nullptr, &handle));
    handle_.reset(handle);
  }

  void put(const std::string& json) {
    check(penstock_cluster_put(handle_.get(), json.data(), json.size()));
  }
  void remove(const std::string& kind, const std::string& name) {
    check(penstock_cluster_remove(handle_.get(), kind.c_str(), name.c_str()));
  }
  // Of a pending pod that was read or put, "namespace/name".
  penstock_decision place(const std::string& pod, bool commit = true) {
    penstock_decision decision = PENSTOCK_DECISION_INIT;
    check(penstock_cluster_place(handle_.get(), pod.c_str(), commit ? 1 : 0, &decision));
    return decision;
  }
  penstock_decision decide(const std::string& pod_json, bool commit = true) {
    penstock_decision decision = PENSTOCK_DECISION_INIT;
    check(penstock_cluster_decide(handle_.get(), pod_json.data(), pod_json.size(), commit ? 1 : 0,
                                  &decision));
    return decision;
  }
  // Why the last decision found no node; "" if it did.
  std::string why() const { return penstock_cluster_why(handle_.get()); }
  std::string explain(const std::string& pod_json) {
    const char* text = nullptr;
    check(penstock_cluster_explain(handle_.get(), pod_json.data(), pod_json.size(), &text));
    return text;
  }

 private:
  struct destroy {
    void operator()(penstock_cluster* handle) const { penstock_cluster_destroy(handle); }
  };
  std::unique_ptr<penstock_cluster, destroy> handle_;
};

}  // namespace penstock
#endif
