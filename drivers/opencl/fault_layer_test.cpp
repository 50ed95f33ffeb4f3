// A layer of OpenCL's loader that fails calls on command, and counts the objects that are held.
#define CL_TARGET_OPENCL_VERSION 300
#include "penstock/drivers/opencl/fault_layer_test.h"

#include <CL/cl_layer.h>

#include <atomic>
#include <mutex>

namespace {

using penstock::opencl::FaultLayer;

FaultLayer faults;
std::mutex mutex;
const cl_icd_dispatch* below = nullptr;
cl_icd_dispatch layer;

// Whether this call is one that fails.
bool fails(const char* name) {
  const std::lock_guard lock(mutex);
  if (std::strcmp(faults.tell.call, name) != 0 || faults.tell.code == 0) return false;
  if (faults.tell.after > 0) {
    --faults.tell.after;
    return false;
  }
  if (faults.tell.times > 0 && --faults.tell.times == 0) {
    faults.tell.call[0] = '\0';
    return true;
  }
  return true;
}
template <typename T>
T* failed(cl_int* code) {
  if (code != nullptr) *code = faults.tell.code;
  return nullptr;
}
template <typename T>
T* counted(T* object, std::int64_t* count) {
  const std::lock_guard lock(mutex);
  if (object != nullptr) ++*count;
  return object;
}
cl_int counted(cl_int result, std::int64_t* count, int by) {
  const std::lock_guard lock(mutex);
  if (result == CL_SUCCESS) *count += by;
  return result;
}
void count(std::uint32_t* number) {
  const std::lock_guard lock(mutex);
  ++*number;
}

cl_int CL_API_CALL get_platforms(cl_uint n, cl_platform_id* platforms, cl_uint* found) {
  return fails("clGetPlatformIDs") ? faults.tell.code
                                   : below->clGetPlatformIDs(n, platforms, found);
}
cl_int CL_API_CALL get_devices(cl_platform_id platform, cl_device_type type, cl_uint n,
                               cl_device_id* devices, cl_uint* found) {
  if (fails("clGetDeviceIDs")) return faults.tell.code;
  cl_uint there = 0;
  const cl_int result =
      below->clGetDeviceIDs(platform, type, faults.tell.twins ? n / 2 : n, devices, &there);
  if (result != CL_SUCCESS) return result;
  if (faults.tell.twins && devices != nullptr)
    for (cl_uint i = 0; i < n / 2; ++i) devices[n / 2 + i] = devices[i];
  if (found != nullptr) *found = faults.tell.twins ? 2 * there : there;
  return CL_SUCCESS;
}
cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info key, size_t bytes,
                                   void* value, size_t* size) {
  for (const auto& changed : faults.tell.info)
    if (changed.key == key && value != nullptr && bytes <= sizeof(changed.value)) {
      std::memcpy(value, &changed.value, bytes);
      return CL_SUCCESS;
    }
  return below->clGetDeviceInfo(device, key, bytes, value, size);
}

cl_context CL_API_CALL create_context(
    const cl_context_properties* properties, cl_uint n, const cl_device_id* devices,
    void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data, cl_int* code) {
  if (fails("clCreateContext")) return failed<_cl_context>(code);
  return counted(below->clCreateContext(properties, n, devices, notify, data, code),
                 &faults.contexts);
}
cl_int CL_API_CALL retain_context(cl_context object) {
  return counted(below->clRetainContext(object), &faults.contexts, 1);
}
cl_int CL_API_CALL release_context(cl_context object) {
  return counted(below->clReleaseContext(object), &faults.contexts, -1);
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int* code) {
  if (fails("clCreateCommandQueue")) return failed<_cl_command_queue>(code);
  return counted(below->clCreateCommandQueue(context, device, properties, code), &faults.queues);
}
cl_command_queue CL_API_CALL create_queue_2(cl_context context, cl_device_id device,
                                            const cl_queue_properties* properties, cl_int* code) {
  if (fails("clCreateCommandQueueWithProperties")) return failed<_cl_command_queue>(code);
  return counted(below->clCreateCommandQueueWithProperties(context, device, properties, code),
                 &faults.queues);
}
cl_int CL_API_CALL retain_queue(cl_command_queue object) {
  return counted(below->clRetainCommandQueue(object), &faults.queues, 1);
}
cl_int CL_API_CALL release_queue(cl_command_queue object) {
  return counted(below->clReleaseCommandQueue(object), &faults.queues, -1);
}

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void* host,
                                 cl_int* code) {
  if (fails("clCreateBuffer")) return failed<_cl_mem>(code);
  const bool of_host = (flags & CL_MEM_USE_HOST_PTR) != 0;
  if (of_host && faults.tell.copies_host_memory)
    flags = (flags & ~cl_mem_flags{CL_MEM_USE_HOST_PTR}) | CL_MEM_COPY_HOST_PTR;
  {
    const std::lock_guard lock(mutex);
    if (of_host) ++faults.host_buffers;
    if (!of_host && faults.tell.most_device_bytes != 0 &&
        faults.device_bytes + bytes > faults.tell.most_device_bytes) {
      if (code != nullptr) *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
      return nullptr;
    }
  }
  cl_mem made = counted(below->clCreateBuffer(context, flags, bytes, host, code), &faults.buffers);
  const std::lock_guard lock(mutex);
  if (made != nullptr && !of_host) faults.device_bytes += bytes;
  return made;
}
cl_int CL_API_CALL retain_memory(cl_mem object) {
  return counted(below->clRetainMemObject(object), &faults.buffers, 1);
}
cl_int CL_API_CALL release_memory(cl_mem object) {
  cl_uint references = 0;
  cl_mem_flags flags = 0;
  size_t bytes = 0;
  below->clGetMemObjectInfo(object, CL_MEM_REFERENCE_COUNT, sizeof(references), &references,
                            nullptr);
  below->clGetMemObjectInfo(object, CL_MEM_FLAGS, sizeof(flags), &flags, nullptr);
  below->clGetMemObjectInfo(object, CL_MEM_SIZE, sizeof(bytes), &bytes, nullptr);
  {
    const std::lock_guard lock(mutex);
    if (references == 1 && (flags & CL_MEM_USE_HOST_PTR) == 0) faults.device_bytes -= bytes;
  }
  return counted(below->clReleaseMemObject(object), &faults.buffers, -1);
}

cl_program CL_API_CALL create_from_source(cl_context context, cl_uint n, const char** texts,
                                          const size_t* sizes, cl_int* code) {
  if (fails("clCreateProgramWithSource")) return failed<_cl_program>(code);
  count(&faults.from_source);
  return counted(below->clCreateProgramWithSource(context, n, texts, sizes, code),
                 &faults.programs);
}
cl_program CL_API_CALL create_from_binary(cl_context context, cl_uint n,
                                          const cl_device_id* devices, const size_t* sizes,
                                          const unsigned char** binaries, cl_int* statuses,
                                          cl_int* code) {
  if (fails("clCreateProgramWithBinary")) return failed<_cl_program>(code);
  count(&faults.from_binary);
  return counted(
      below->clCreateProgramWithBinary(context, n, devices, sizes, binaries, statuses, code),
      &faults.programs);
}
cl_int CL_API_CALL retain_program(cl_program object) {
  return counted(below->clRetainProgram(object), &faults.programs, 1);
}
cl_int CL_API_CALL release_program(cl_program object) {
  return counted(below->clReleaseProgram(object), &faults.programs, -1);
}
cl_int CL_API_CALL build_program(cl_program program, cl_uint n, const cl_device_id* devices,
                                 const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                                 void* data) {
  if (fails("clBuildProgram")) return faults.tell.code;
  return below->clBuildProgram(program, n, devices, options, notify, data);
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* code) {
  if (fails("clCreateKernel")) return failed<_cl_kernel>(code);
  return counted(below->clCreateKernel(program, name, code), &faults.kernels);
}
cl_int CL_API_CALL retain_kernel(cl_kernel object) {
  return counted(below->clRetainKernel(object), &faults.kernels, 1);
}
cl_int CL_API_CALL release_kernel(cl_kernel object) {
  return counted(below->clReleaseKernel(object), &faults.kernels, -1);
}

cl_int with_event(cl_int result, const cl_event* event) {
  return event == nullptr ? result : counted(result, &faults.events, 1);
}
cl_int CL_API_CALL start_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                const size_t* offset, const size_t* global, const size_t* local,
                                cl_uint n, const cl_event* after, cl_event* event) {
  if (fails("clEnqueueNDRangeKernel")) return faults.tell.code;
  count(&faults.kernels_started);
  return with_event(below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                                  n, after, event),
                    event);
}
cl_int CL_API_CALL start_read(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                              size_t offset, size_t bytes, void* data, cl_uint n,
                              const cl_event* after, cl_event* event) {
  if (fails("clEnqueueReadBuffer")) return faults.tell.code;
  count(&faults.reads);
  return with_event(
      below->clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, data, n, after, event),
      event);
}
cl_int CL_API_CALL start_write(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                               size_t offset, size_t bytes, const void* data, cl_uint n,
                               const cl_event* after, cl_event* event) {
  if (fails("clEnqueueWriteBuffer")) return faults.tell.code;
  count(&faults.writes);
  return with_event(
      below->clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, data, n, after, event),
      event);
}
cl_int CL_API_CALL retain_event(cl_event object) {
  return counted(below->clRetainEvent(object), &faults.events, 1);
}
cl_int CL_API_CALL release_event(cl_event object) {
  return counted(below->clReleaseEvent(object), &faults.events, -1);
}
cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info key, size_t bytes, void* value,
                                  size_t* size) {
  if (key == CL_EVENT_COMMAND_EXECUTION_STATUS && faults.tell.event_status != 0 &&
      value != nullptr) {
    std::memcpy(value, &faults.tell.event_status, sizeof(cl_int));
    return CL_SUCCESS;
  }
  return below->clGetEventInfo(event, key, bytes, value, size);
}
cl_int CL_API_CALL flush(cl_command_queue queue) {
  return fails("clFlush") ? faults.tell.code : below->clFlush(queue);
}
cl_int CL_API_CALL finish(cl_command_queue queue) {
  count(&faults.finishes);
  return below->clFinish(queue);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) FaultLayer* penstock_opencl_fault_layer() { return &faults; }

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info key,
                                                                         size_t bytes, void* value,
                                                                         size_t* size) {
  if (key != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (value != nullptr) {
    if (bytes < sizeof(version)) return CL_INVALID_VALUE;
    std::memcpy(value, &version, sizeof(version));
  }
  if (size != nullptr) *size = sizeof(version);
  return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayer(
    cl_uint n, const cl_icd_dispatch* target, cl_uint* n_layer, const cl_icd_dispatch** dispatch) {
  if (n < sizeof(cl_icd_dispatch) / sizeof(void*)) return CL_INVALID_VALUE;
  below = target;
  layer = *target;
  layer.clGetPlatformIDs = get_platforms;
  layer.clGetDeviceIDs = get_devices;
  layer.clGetDeviceInfo = get_device_info;
  layer.clCreateContext = create_context;
  layer.clRetainContext = retain_context;
  layer.clReleaseContext = release_context;
  layer.clCreateCommandQueue = create_queue;
  layer.clCreateCommandQueueWithProperties = create_queue_2;
  layer.clRetainCommandQueue = retain_queue;
  layer.clReleaseCommandQueue = release_queue;
  layer.clCreateBuffer = create_buffer;
  layer.clRetainMemObject = retain_memory;
  layer.clReleaseMemObject = release_memory;
  layer.clCreateProgramWithSource = create_from_source;
  layer.clCreateProgramWithBinary = create_from_binary;
  layer.clRetainProgram = retain_program;
  layer.clReleaseProgram = release_program;
  layer.clBuildProgram = build_program;
  layer.clCreateKernel = create_kernel;
  layer.clRetainKernel = retain_kernel;
  layer.clReleaseKernel = release_kernel;
  layer.clEnqueueNDRangeKernel = start_kernel;
  layer.clEnqueueReadBuffer = start_read;
  layer.clEnqueueWriteBuffer = start_write;
  layer.clRetainEvent = retain_event;
  layer.clReleaseEvent = release_event;
  layer.clGetEventInfo = get_event_info;
  layer.clFlush = flush;
  layer.clFinish = finish;
  *n_layer = sizeof(cl_icd_dispatch) / sizeof(void*);
  *dispatch = &layer;
  faults.loaded = true;
  return CL_SUCCESS;
}
}
