// Any MPI, through its C interface. bf16 is no type of MPI 3.1: it is summed by an operation of the
// user's, which is how MPI is extended.
#include <mpi.h>

#include <cstdint>
#include <cstring>

#include "rank_main.h"

namespace penstock::bench {
namespace {

void add_bf16(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  const auto* const a = static_cast<const std::uint16_t*>(in);
  auto* const b = static_cast<std::uint16_t*>(inout);
  for (int i = 0; i < *length; ++i) {
    const std::uint32_t a_bits = static_cast<std::uint32_t>(a[i]) << 16;
    const std::uint32_t b_bits = static_cast<std::uint32_t>(b[i]) << 16;
    float x = 0;
    float y = 0;
    std::memcpy(&x, &a_bits, 4);
    std::memcpy(&y, &b_bits, 4);
    x += y;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, 4);
    b[i] = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

class MpiPeer final : public Peer {
 public:
  MpiPeer() {
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank_ = static_cast<std::uint32_t>(rank);
    size_ = static_cast<std::uint32_t>(size);
    MPI_Op_create(add_bf16, 1, &add_bf16_);
  }
  ~MpiPeer() override { MPI_Op_free(&add_bf16_); }
  MpiPeer(const MpiPeer&) = delete;
  MpiPeer& operator=(const MpiPeer&) = delete;

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return size_; }

  std::vector<std::string> prepare(const Problem& problem, void* send, void* recv) override {
    collective_ = problem.collective;
    count_ = static_cast<int>(problem.count);
    send_ = send;
    recv_ = recv;
    type_ = problem.type == Type::f32    ? MPI_FLOAT
            : problem.type == Type::int8 ? MPI_INT8_T
                                         : MPI_UINT16_T;
    sum_ = problem.type == Type::bf16 ? add_bf16_ : MPI_SUM;
    return {""};
  }

  void run() override {
    const MPI_Comm world = MPI_COMM_WORLD;
    switch (collective_) {
      case Collective::all_reduce:
        MPI_Allreduce(send_, recv_, count_, type_, sum_, world);
        return;
      case Collective::broadcast:
        MPI_Bcast(recv_, count_, type_, 0, world);
        return;
      case Collective::reduce:
        MPI_Reduce(send_, recv_, count_, type_, sum_, 0, world);
        return;
      case Collective::all_gather:
        MPI_Allgather(send_, count_, type_, recv_, count_, type_, world);
        return;
      case Collective::reduce_scatter:
        MPI_Reduce_scatter_block(send_, recv_, count_, type_, sum_, world);
        return;
      case Collective::all_to_all:
        MPI_Alltoall(send_, count_, type_, recv_, count_, type_, world);
        return;
      case Collective::gather:
        MPI_Gather(send_, count_, type_, recv_, count_, type_, 0, world);
        return;
      case Collective::scatter:
        MPI_Scatter(send_, count_, type_, recv_, count_, type_, 0, world);
        return;
      case Collective::send_recv:
        if (rank_ % 2 == 1) {
          MPI_Recv(recv_, count_, type_, static_cast<int>(rank_) - 1, 0, world, MPI_STATUS_IGNORE);
        } else if (rank_ + 1 < size_) {
          MPI_Send(send_, count_, type_, static_cast<int>(rank_) + 1, 0, world);
        }
        return;
      default:
        MPI_Barrier(world);
    }
  }

 private:
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  Collective collective_ = Collective::barrier;
  int count_ = 0;
  MPI_Datatype type_ = MPI_FLOAT;
  MPI_Op add_bf16_ = MPI_OP_NULL;
  MPI_Op sum_ = MPI_SUM;
  void* send_ = nullptr;
  void* recv_ = nullptr;
};

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 0;
  {
    penstock::bench::MpiPeer peer;
    penstock::bench::RankOptions options = penstock::bench::parse_rank_options(argc, argv);
    status = penstock::bench::run_rank(peer, options);
  }
  MPI_Finalize();
  return status;
}
