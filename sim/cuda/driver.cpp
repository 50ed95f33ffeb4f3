// The driver's functions, as far as Penstock and its example use them.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "penstock/sim/cuda/machine.h"

using penstock::sim::cuda::Completion;
using penstock::sim::cuda::find_function;
using penstock::sim::cuda::Function;
using penstock::sim::cuda::Machine;
using penstock::sim::cuda::make_launch;
using penstock::sim::cuda::Memory;

struct CUctx_st {
  int ordinal;
  int owners;
};
struct CUmod_st {};
struct CUstream_st {
  penstock::sim::cuda::Stream stream;
};
struct CUevent_st {
  std::shared_ptr<Completion> last;
};
struct CUgraphNode_st {
  std::size_t index;
};
struct GraphLaunch {
  const Function* function;
  std::uint32_t groups, lanes;
  std::function<bool()> run;
};
struct CUgraph_st {
  std::vector<GraphLaunch> launches;
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  std::vector<GraphLaunch> launches;
};

namespace {

constexpr int kVersion = 13000;
constexpr CUresult kLoss = CUDA_ERROR_LAUNCH_FAILED;

CUctx_st contexts[16];
std::mutex contexts_mutex;
thread_local std::vector<CUcontext> current;

Machine& machine() { return Machine::instance(); }
CUresult alive() { return machine().lost ? kLoss : CUDA_SUCCESS; }

// Work that needs a context which is well.
CUresult ready() {
  if (current.empty() || current.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return alive();
}

// What an illegal address does to a device.
void fail_device() { machine().lost = true; }

std::byte* reach(CUdeviceptr address, std::size_t bytes) {
  if (machine().memory.find(address)) return machine().memory.translate(address, bytes);
  if (machine().memory.find(address + bytes - 1)) return nullptr;
  return reinterpret_cast<std::byte*>(address);
}

void copy_now(CUdeviceptr dst, CUdeviceptr src, std::size_t bytes) {
  if (bytes == 0 || machine().lost) return;
  std::byte* to = reach(dst, bytes);
  const std::byte* from = reach(src, bytes);
  if (to == nullptr || from == nullptr) return fail_device();
  std::memmove(to, from, bytes);
}

void run_now(std::function<bool()> run) {
  if (machine().launch() && !run()) fail_device();
}

}  // namespace

extern "C" {

penstock_cuda_standin_counts penstock_cuda_standin_live(void) {
  const auto& c = machine().counts;
  return {c.contexts,    c.modules, c.streams,       c.events,   c.graphs,
          c.allocations, c.pinned,  c.registrations, c.launches, c.graph_launches};
}
int penstock_cuda_standin_restart(const char* options) {
  return machine().restart(options) ? 0 : -1;
}

CUresult CUDAAPI cuInit(unsigned) {
  return machine().options.deny != 0 ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}
CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = kVersion;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorName(CUresult result, const char** name) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_LAUNCH_FAILED:
      *name = "CUDA_ERROR_LAUNCH_FAILED";
      break;
    case CUDA_ERROR_NOT_PERMITTED:
      *name = "CUDA_ERROR_NOT_PERMITTED";
      break;
    case CUDA_ERROR_NOT_SUPPORTED:
      *name = "CUDA_ERROR_NOT_SUPPORTED";
      break;
    case CUDA_ERROR_INVALID_VALUE:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    default:
      *name = "CUDA_ERROR_OTHER";
  }
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorString(CUresult, const char** text) {
  *text = "said by the stand-in driver";
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  *count = static_cast<int>(machine().options.devices);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || static_cast<std::uint64_t>(ordinal) >= machine().options.devices)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::strncpy(name, "stand-in, no GPU: kernels run on the host", static_cast<std::size_t>(bytes));
  name[bytes - 1] = '\0';
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
      *value = machine().options.pageable != 0 ? 1 : 0;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (machine().lost) return kLoss;
  const std::lock_guard lock(contexts_mutex);
  contexts[device].ordinal = device;
  ++contexts[device].owners;
  ++machine().counts.contexts;
  *context = &contexts[device];
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  const std::lock_guard lock(contexts_mutex);
  if (contexts[device].owners == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --contexts[device].owners;
  --machine().counts.contexts;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  current.push_back(context);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  if (!current.empty()) current.pop_back();
  if (context != nullptr) current.push_back(context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic != 0xba55ed50) return CUDA_ERROR_INVALID_IMAGE;
  *module = new CUmod_st;
  ++machine().counts.modules;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  delete module;
  --machine().counts.modules;
  return alive();
}
CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  const Function* found = find_function(name);
  *function = reinterpret_cast<CUfunction>(const_cast<Function*>(found));
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t left = machine().options.memory - machine().memory.device_bytes();
  if (!machine().allocate() || bytes > left) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = machine().memory.add_device(bytes, current.back()->ordinal);
  if (*address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  ++machine().counts.allocations;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  if (!machine().memory.remove_device(address)) return CUDA_ERROR_INVALID_VALUE;
  --machine().counts.allocations;
  return alive();
}
CUresult CUDAAPI cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  if (!machine().allocate()) return CUDA_ERROR_OUT_OF_MEMORY;
  void* made = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (made == nullptr || machine().memory.add_host(made, bytes) == 0) {
    std::free(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *memory = made;
  ++machine().counts.pinned;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFreeHost(void* memory) {
  if (!machine().memory.remove_host(memory)) return CUDA_ERROR_INVALID_VALUE;
  std::free(memory);
  --machine().counts.pinned;
  return alive();
}
CUresult CUDAAPI cuMemHostRegister(void* memory, std::size_t bytes, unsigned) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  if (machine().options.reg == 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (machine().memory.find_host(memory)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (machine().memory.add_host(memory, bytes) == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  ++machine().counts.registrations;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemHostUnregister(void* memory) {
  if (!machine().memory.remove_host(memory)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  --machine().counts.registrations;
  return alive();
}
CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned) {
  const auto range = machine().memory.find_host(memory);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  *address =
      range->address + static_cast<std::size_t>(static_cast<std::byte*>(memory) - range->storage);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const auto range = machine().memory.find(address);
  if (!range) return CUDA_ERROR_NOT_FOUND;
  *base = range->address;
  *bytes = range->bytes;
  return alive();
}
CUresult CUDAAPI cuPointerGetAttribute(void* value, CUpointer_attribute which, CUdeviceptr at) {
  auto range = machine().memory.find_host(reinterpret_cast<const void*>(at));
  const CUdeviceptr mapped =
      range ? range->address + (at - reinterpret_cast<std::uintptr_t>(range->storage)) : at;
  if (!range) range = machine().memory.find(at);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(value) = range->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(value) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = range->ordinal;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(value) = mapped;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, std::size_t bytes, CUstream s) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  s->stream.put([=] { copy_now(dst, src, bytes); });
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr dst, const void* src, std::size_t bytes) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  copy_now(dst, reinterpret_cast<CUdeviceptr>(src), bytes);
  return alive();
}
CUresult CUDAAPI cuMemcpyDtoH(void* dst, CUdeviceptr src, std::size_t bytes) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  copy_now(reinterpret_cast<CUdeviceptr>(dst), src, bytes);
  return alive();
}

CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  *stream = new CUstream_st;
  ++machine().counts.streams;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  delete stream;
  --machine().counts.streams;
  return alive();
}
CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  stream->stream.synchronize();
  return alive();
}
CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  if (event->last == nullptr) return CUDA_SUCCESS;
  stream->stream.put([last = event->last] { machine().wait(*last); });
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  *event = new CUevent_st;
  ++machine().counts.events;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventDestroy(CUevent event) {
  delete event;
  --machine().counts.events;
  return alive();
}
CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  event->last = std::make_shared<Completion>();
  stream->stream.put([last = event->last] { machine().finish(*last); });
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventQuery(CUevent event) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  if (event->last != nullptr && !event->last->done) return CUDA_ERROR_NOT_READY;
  return alive();
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  if (event->last != nullptr) machine().wait(*event->last);
  return alive();
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned groups, unsigned, unsigned,
                                unsigned lanes, unsigned, unsigned, unsigned, CUstream stream,
                                void** parameters, void**) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  auto run = make_launch(*reinterpret_cast<const Function*>(function), groups, lanes, parameters);
  if (!run) return CUDA_ERROR_INVALID_VALUE;
  stream->stream.put([run = std::move(run)] { run_now(run); });
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  stream->stream.put([=] {
    if (!machine().lost) function(data);
  });
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphCreate(CUgraph* graph, unsigned) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  *graph = new CUgraph_st;
  ++machine().counts.graphs;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  delete graph;
  --machine().counts.graphs;
  return alive();
}
CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                      std::size_t n_before, const CUDA_KERNEL_NODE_PARAMS* p) {
  // A chain is all that is known here.
  const std::size_t index = graph->launches.size();
  if (n_before != (index == 0 ? 0 : 1) || (index != 0 && before[0]->index != index - 1))
    return CUDA_ERROR_NOT_SUPPORTED;
  const auto* function = reinterpret_cast<const Function*>(p->func);
  auto run = make_launch(*function, p->gridDimX, p->blockDimX, p->kernelParams);
  if (!run) return CUDA_ERROR_INVALID_VALUE;
  graph->launches.push_back({function, p->gridDimX, p->blockDimX, std::move(run)});
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{index}));
  *node = graph->nodes.back().get();
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  *executable = new CUgraphExec_st{graph->launches};
  ++machine().counts.graphs;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec executable) {
  delete executable;
  --machine().counts.graphs;
  return alive();
}
CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS* p) {
  const auto* function = reinterpret_cast<const Function*>(p->func);
  auto run = make_launch(*function, p->gridDimX, p->blockDimX, p->kernelParams);
  if (!run) return CUDA_ERROR_INVALID_VALUE;
  executable->launches[node->index] = {function, p->gridDimX, p->blockDimX, std::move(run)};
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  ++machine().counts.graph_launches;
  for (const GraphLaunch& launch : executable->launches)
    stream->stream.put([run = launch.run] { run_now(run); });
  return CUDA_SUCCESS;
}

}  // extern "C"
