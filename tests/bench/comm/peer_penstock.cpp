// Penstock through its C interface. BENCH_BUFFERS=pool takes the buffers from the pool, private
// from the process; PENSTOCK_COHERENCE is the library's own.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "penstock/penstock.h"
#include "rank_main.h"

namespace penstock::bench {
namespace {

std::string g_spec;

void check(penstock_status status, const char* what) {
  if (status == PENSTOCK_OK) return;
  std::fprintf(stderr, "bench: %s: %s: %s\n", what, penstock_status_name(status),
               penstock_last_error());
  std::_Exit(2);
}

void destroy_pool() { penstock_pool_destroy(g_spec.c_str()); }

class PenstockPeer final : public Peer {
 public:
  PenstockPeer(std::uint32_t rank, std::uint32_t size, bool in_pool)
      : rank_(rank), size_(size), in_pool_(in_pool) {
    check(penstock_comm_init(nullptr, &comm_), "joining the comm");
    if (in_pool) check(penstock_pool_map(g_spec.c_str(), &pool_), "mapping the pool");
  }
  ~PenstockPeer() override {
    penstock_comm_destroy(comm_);
    penstock_pool_unmap(pool_);
  }
  PenstockPeer(const PenstockPeer&) = delete;
  PenstockPeer& operator=(const PenstockPeer&) = delete;

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return size_; }

  void* allocate(Buffer buffer, std::size_t bytes) override {
    if (!in_pool_) return Peer::allocate(buffer, bytes);
    void* data = nullptr;
    check(penstock_pool_allocate(pool_, nullptr, bytes, -1, &data), "allocating in the pool");
    return data;
  }

  std::vector<std::string> prepare(const Problem& problem, void* send, void* recv) override {
    problem_ = problem;
    send_ = send;
    recv_ = recv;
    constexpr penstock_type kTypes[] = {PENSTOCK_F32, PENSTOCK_BF16, PENSTOCK_INT8};
    type_ = kTypes[static_cast<std::size_t>(problem.type)];
    return {""};
  }

  void run() override {
    const std::uint64_t count = problem_.count;
    switch (problem_.collective) {
      case Collective::all_reduce:
        return done(penstock_all_reduce(comm_, send_, recv_, count, type_, PENSTOCK_SUM));
      case Collective::broadcast:
        return done(
            penstock_broadcast(comm_, rank_ == 0 ? recv_ : nullptr, recv_, count, type_, 0));
      case Collective::reduce:
        return done(penstock_reduce(comm_, send_, recv_, count, type_, PENSTOCK_SUM, 0));
      case Collective::all_gather:
        return done(penstock_all_gather(comm_, send_, recv_, count, type_));
      case Collective::reduce_scatter:
        return done(penstock_reduce_scatter(comm_, send_, recv_, count, type_, PENSTOCK_SUM));
      case Collective::all_to_all:
        return done(penstock_all_to_all(comm_, send_, recv_, count, type_));
      case Collective::gather:
        return done(penstock_gather(comm_, send_, recv_, count, type_, 0));
      case Collective::scatter:
        return done(penstock_scatter(comm_, send_, recv_, count, type_, 0));
      case Collective::send_recv:
        if (rank_ % 2 == 1) return done(penstock_recv(comm_, recv_, count, type_, rank_ - 1));
        if (rank_ + 1 < size_) return done(penstock_send(comm_, send_, count, type_, rank_ + 1));
        return;
      default:
        return done(penstock_barrier(comm_));
    }
  }

 private:
  static void done(penstock_status status) { check(status, "a call"); }

  const std::uint32_t rank_;
  const std::uint32_t size_;
  const bool in_pool_;
  penstock_comm* comm_ = nullptr;
  penstock_pool* pool_ = nullptr;
  Problem problem_;
  penstock_type type_ = PENSTOCK_F32;
  void* send_ = nullptr;
  void* recv_ = nullptr;
};

int run(int argc, char** argv) {
  const RankOptions options = parse_rank_options(argc, argv);
  const char* const buffers = std::getenv("BENCH_BUFFERS");
  const bool in_pool = buffers != nullptr && std::string(buffers) == "pool";
  g_spec = "/dev/shm/penstock-bench-" + std::to_string(::getpid());
  const std::uint64_t bytes = (std::uint64_t{64} << 20) +
                              options.ranks * (2 * options.largest() + (std::uint64_t{8} << 20));
  check(penstock_pool_create(g_spec.c_str(), 1, bytes), "making the pool");
  // As `penstock run` would tell its ranks.
  ::setenv("PENSTOCK_POOL", g_spec.c_str(), 1);
  ::setenv("PENSTOCK_COMM", ("bench-" + std::to_string(::getpid())).c_str(), 1);
  ::setenv("PENSTOCK_SIZE", std::to_string(options.ranks).c_str(), 1);
  const std::uint32_t rank = fork_ranks(options.ranks, destroy_pool);
  ::setenv("PENSTOCK_RANK", std::to_string(rank).c_str(), 1);
  PenstockPeer peer(rank, options.ranks, in_pool);
  return run_rank(peer, options);
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::run(argc, argv); }
