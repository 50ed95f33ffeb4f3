#include "penstock/drivers/cuda/launcher.h"

#include <algorithm>
#include <utility>

namespace penstock::cuda {

std::vector<void*> Launch::parameters() {
  std::vector<void*> pointers;
  pointers.reserve(offsets_.size());
  for (const std::size_t offset : offsets_) pointers.push_back(bytes_.data() + offset);
  return pointers;
}

Launcher::~Launcher() {
  for (const auto& graph : known_) destroy(graph.get());
}

void Launcher::destroy(Graph* graph) {
  if (graph->executable != nullptr) driver_.cuGraphExecDestroy(graph->executable);
  if (graph->graph != nullptr) driver_.cuGraphDestroy(graph->graph);
  graph->executable = nullptr;
  graph->graph = nullptr;
}

CUDA_KERNEL_NODE_PARAMS Launcher::node_of(const Launch& launch, void** parameters) {
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = launch.function();
  node.gridDimX = launch.groups();
  node.gridDimY = node.gridDimZ = 1;
  node.blockDimX = launch.lanes();
  node.blockDimY = node.blockDimZ = 1;
  node.kernelParams = parameters;
  return node;
}

Status Launcher::launch_each() {
  for (Launch& launch : pending_) {
    std::vector<void*> parameters = launch.parameters();
    PENSTOCK_TRY(driver_.check(
        driver_.cuLaunchKernel(launch.function(), launch.groups(), 1, 1, launch.lanes(), 1, 1, 0,
                               stream_, parameters.data(), nullptr),
        fmt::format("cuLaunchKernel of {} groups of {}", launch.groups(), launch.lanes())));
  }
  return {};
}

// The graph of those kernels in that order; a new entry takes the place of the one that was not
// used for longest.
Launcher::Graph* Launcher::find(const std::vector<CUfunction>& functions) {
  for (const auto& graph : known_) {
    if (graph->functions != functions) continue;
    graph->used = ++clock_;
    return graph.get();
  }
  if (known_.size() == kGraphs) {
    const auto oldest =
        std::min_element(known_.begin(), known_.end(),
                         [](const auto& a, const auto& b) { return a->used < b->used; });
    destroy(oldest->get());
    known_.erase(oldest);
  }
  auto graph = std::make_unique<Graph>();
  graph->functions = functions;
  graph->used = ++clock_;
  known_.push_back(std::move(graph));
  return nullptr;
}

// A chain: each launch sees what the one before it wrote.
Status Launcher::make(Graph* graph) {
  PENSTOCK_TRY(driver_.check(driver_.cuGraphCreate(&graph->graph, 0), "cuGraphCreate"));
  graph->nodes.clear();
  for (Launch& launch : pending_) {
    std::vector<void*> parameters = launch.parameters();
    const CUDA_KERNEL_NODE_PARAMS node = node_of(launch, parameters.data());
    const CUgraphNode* before = graph->nodes.empty() ? nullptr : &graph->nodes.back();
    CUgraphNode made = nullptr;
    PENSTOCK_TRY(driver_.check(
        driver_.cuGraphAddKernelNode(&made, graph->graph, before, before != nullptr ? 1 : 0, &node),
        "cuGraphAddKernelNode"));
    graph->nodes.push_back(made);
  }
  return driver_.check(driver_.cuGraphInstantiate(&graph->executable, graph->graph, 0),
                       "cuGraphInstantiate");
}

Status Launcher::update(Graph* graph) {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    std::vector<void*> parameters = pending_[i].parameters();
    const CUDA_KERNEL_NODE_PARAMS node = node_of(pending_[i], parameters.data());
    PENSTOCK_TRY(driver_.check(
        driver_.cuGraphExecKernelNodeSetParams(graph->executable, graph->nodes[i], &node),
        "cuGraphExecKernelNodeSetParams"));
  }
  return {};
}

Status Launcher::flush() {
  if (pending_.empty()) return {};
  Graph* graph = nullptr;
  if (graphs_ && pending_.size() >= kFewestNodes && pending_.size() <= kMostNodes) {
    std::vector<CUfunction> functions;
    for (const Launch& launch : pending_) functions.push_back(launch.function());
    graph = find(functions);
  }
  Status status;
  // Nothing of a graph is on the stream before it is launched, so that what it lacks memory for can
  // go without.
  if (graph != nullptr) {
    status = graph->executable == nullptr ? make(graph) : update(graph);
    if (!status.ok()) {
      destroy(graph);
      graph = nullptr;
    }
  }
  if (graph != nullptr) {
    status = driver_.check(driver_.cuGraphLaunch(graph->executable, stream_), "cuGraphLaunch");
    ++graph_launches_;
  } else {
    status = launch_each();
  }
  pending_.clear();
  return status;
}

}  // namespace penstock::cuda
