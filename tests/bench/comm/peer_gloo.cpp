// Gloo over its TCP transport on the loopback device; it has none for shared memory. Its
// reduce_scatter works in place, so that the input of the first call only is right; it is left out.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <cstdio>
#include <cstdlib>

#include "rank_main.h"

namespace penstock::bench {
namespace {

class GlooPeer final : public Peer {
 public:
  GlooPeer(std::uint32_t rank, std::uint32_t size, const std::string& folder)
      : rank_(rank), size_(size) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(folder);
    context_ =
        std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank), static_cast<int>(size));
    context_->connectFullMesh(store, device);
  }

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return size_; }
  bool has_helpers() const override { return true; }

  std::vector<std::string> prepare(const Problem& problem, void* send, void* recv) override {
    problem_ = problem;
    send_ = send;
    recv_ = recv;
    unbound_.reset();
    if (problem.type == Type::bf16 || problem.collective == Collective::reduce_scatter) return {};
    if (problem.collective == Collective::send_recv) {
      void* const data = rank_ % 2 == 0 ? send : recv;
      unbound_ = context_->createUnboundBuffer(data, problem.part_bytes());
    }
    return {""};
  }

  void run() override {
    ++tag_;
    problem_.type == Type::f32 ? call<float>() : call<std::int8_t>();
  }

 private:
  template <typename T>
  using Fold = void (*)(void*, const void*, const void*, std::size_t);

  template <typename T>
  void call() {
    auto* const in = static_cast<T*>(send_);
    auto* const out = static_cast<T*>(recv_);
    const std::size_t n = problem_.count;
    switch (problem_.collective) {
      case Collective::all_reduce: {
        gloo::AllreduceOptions options(context_);
        options.setInput(in, n);
        options.setOutput(out, n);
        options.setReduceFunction(static_cast<Fold<T>>(&gloo::sum<T>));
        options.setTag(tag_);
        return gloo::allreduce(options);
      }
      case Collective::broadcast: {
        gloo::BroadcastOptions options(context_);
        options.setOutput(out, n);
        options.setRoot(0);
        options.setTag(tag_);
        return gloo::broadcast(options);
      }
      case Collective::reduce: {
        gloo::ReduceOptions options(context_);
        options.setInput(in, n);
        options.setOutput(out, n);
        options.setRoot(0);
        options.setReduceFunction(static_cast<Fold<T>>(&gloo::sum<T>));
        options.setTag(tag_);
        return gloo::reduce(options);
      }
      case Collective::all_gather: {
        gloo::AllgatherOptions options(context_);
        options.setInput(in, n);
        options.setOutput(out, n * size_);
        options.setTag(tag_);
        return gloo::allgather(options);
      }
      case Collective::all_to_all: {
        gloo::AlltoallOptions options(context_);
        options.setInput(in, n * size_);
        options.setOutput(out, n * size_);
        options.setTag(tag_);
        return gloo::alltoall(options);
      }
      case Collective::send_recv: {
        const auto pair = static_cast<int>(rank_ ^ 1);
        if (pair >= static_cast<int>(size_)) return;
        rank_ % 2 == 0 ? unbound_->send(pair, tag_) : unbound_->recv(pair, tag_);
        rank_ % 2 == 0 ? unbound_->waitSend() : unbound_->waitRecv();
        return;
      }
      case Collective::barrier: {
        gloo::BarrierOptions options(context_);
        options.setTag(tag_);
        return gloo::barrier(options);
      }
      default:
        return call_rooted(in, out, n);
    }
  }

  template <typename T>
  void call_rooted(T* in, T* out, std::size_t n) {
    if (problem_.collective == Collective::gather) {
      gloo::GatherOptions options(context_);
      options.setInput(in, n);
      if (rank_ == 0) options.setOutput(out, n * size_);
      options.setRoot(0);
      options.setTag(tag_);
      return gloo::gather(options);
    }
    gloo::ScatterOptions options(context_);
    if (rank_ == 0) {
      std::vector<T*> inputs;
      for (std::uint32_t reader = 0; reader < size_; ++reader) inputs.push_back(in + reader * n);
      options.setInputs(inputs, n);
    }
    options.setOutput(out, n);
    options.setRoot(0);
    options.setTag(tag_);
    gloo::scatter(options);
  }

  const std::uint32_t rank_;
  const std::uint32_t size_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::unique_ptr<gloo::transport::UnboundBuffer> unbound_;
  Problem problem_;
  std::uint32_t tag_ = 0;
  void* send_ = nullptr;
  void* recv_ = nullptr;
};

int run(int argc, char** argv) {
  const RankOptions options = parse_rank_options(argc, argv);
  const char* const folder = std::getenv("BENCH_FOLDER");
  if (folder == nullptr) {
    std::fprintf(stderr, "bench: BENCH_FOLDER names no folder for Gloo's rendezvous\n");
    return 2;
  }
  const std::uint32_t rank = fork_ranks(options.ranks);
  int status = 2;
  try {
    GlooPeer peer(rank, options.ranks, folder);
    status = run_rank(peer, options);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "bench: gloo: %s\n", problem.what());
  }
  // Its helper threads do not take well to being torn down.
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::run(argc, argv); }
