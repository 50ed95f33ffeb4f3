// Launches of one stream, gathered until they have to go: a group of them that comes again, with
// other arguments, goes as one graph.
#ifndef PENSTOCK_DRIVERS_CUDA_LAUNCHER_H_
#define PENSTOCK_DRIVERS_CUDA_LAUNCHER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "penstock/drivers/cuda/driver.h"

namespace penstock::cuda {

// One kernel with its arguments by value.
class Launch {
 public:
  Launch() = default;
  Launch(CUfunction function, std::uint32_t groups, std::uint32_t lanes)
      : function_(function), groups_(groups), lanes_(lanes) {}
  // The next argument of the kernel.
  template <typename T>
  void add(const T& argument) {
    const std::size_t at = (bytes_.size() + alignof(std::max_align_t) - 1) /
                           alignof(std::max_align_t) * alignof(std::max_align_t);
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &argument, sizeof(T));
    offsets_.push_back(at);
  }
  CUfunction function() const { return function_; }
  std::uint32_t groups() const { return groups_; }
  std::uint32_t lanes() const { return lanes_; }
  // Pointers to the arguments, valid while the launch stays as it is.
  std::vector<void*> parameters();

 private:
  CUfunction function_ = nullptr;
  std::uint32_t groups_ = 0, lanes_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> offsets_;
};

// One thread at a time; the context is current.
class Launcher {
 public:
  // `graphs`: whether to use them.
  Launcher(const Driver& driver, CUstream stream, bool graphs)
      : driver_(driver), stream_(stream), graphs_(graphs) {}
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void add(Launch launch) { pending_.push_back(std::move(launch)); }
  // Hands what was added to the stream, in that order.
  Status flush();
  // How many graphs were launched.
  std::uint64_t graph_launches() const { return graph_launches_; }

 private:
  // From so many launches on, one graph costs less than they do by themselves.
  static constexpr std::size_t kFewestNodes = 4;
  static constexpr std::size_t kMostNodes = 64;
  static constexpr std::size_t kGraphs = 8;

  struct Graph {
    std::vector<CUfunction> functions;  // of the nodes
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;  // null: seen once, not made yet
    std::vector<CUgraphNode> nodes;
    std::uint64_t used = 0;
  };
  Graph* find(const std::vector<CUfunction>& functions);
  Status make(Graph* graph);
  Status update(Graph* graph);
  void destroy(Graph* graph);
  static CUDA_KERNEL_NODE_PARAMS node_of(const Launch& launch, void** parameters);
  Status launch_each();

  const Driver& driver_;
  const CUstream stream_;
  const bool graphs_;
  std::vector<Launch> pending_;
  std::vector<std::unique_ptr<Graph>> known_;
  std::uint64_t clock_ = 0;
  std::uint64_t graph_launches_ = 0;
};

}  // namespace penstock::cuda
#endif
