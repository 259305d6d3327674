// The CUDA driver, reached through dlopen. A call that fails throws CudaFailure.
#pragma once

#include <cuda.h>

#include <string>

#include "launcher/driver/error.h"
#include "launcher/driver/shared_library.h"

namespace tbsched::cuda {

static_assert(CUDA_VERSION >= 12050, "the launcher needs the toolkit of CUDA 12.5 or later");

// A function of the driver.
template <typename Function>
class Entry;

// Tag of an entry that older drivers lack: it converts to false there, and must not be called.
struct OptionalEntry {};

template <typename... Arguments>
class Entry<CUresult (*)(Arguments...)> {
 public:
  // Throws NoGpu if the library has no such function.
  Entry(const SharedLibrary& library, const char* const name)
      : Entry(library, name, OptionalEntry()) {
    if (library && function_ == nullptr) {
      throw NoGpu(std::string("the CUDA driver is too old: it has no ") + name);
    }
  }
  Entry(const SharedLibrary& library, const char* const name, OptionalEntry)
      : name_(name), function_(library.find<CUresult (*)(Arguments...)>(name)) {}

  explicit operator bool() const { return function_ != nullptr; }
  const char* name() const { return name_; }

  // Calls the function, and returns its result.
  CUresult code(const Arguments... arguments) const { return function_(arguments...); }

  // Calls the function. Throws CudaFailure if it fails.
  void operator()(const Arguments... arguments) const { check(function_(arguments...)); }

  // Throws CudaFailure if a call of code() has failed with this result.
  void check(const CUresult result) const {
    if (result != CUDA_SUCCESS) throw failure(name_, result);
  }

 private:
  static CudaFailure failure(const char* call, CUresult result);

  const char* name_;
  CUresult (*function_)(Arguments...);
};

// cuda.h maps some names to a later version by macro; the symbol has to be spelt out.
struct Driver {
  // Returns the driver, which is loaded and initialised at the first call. Throws NoGpu.
  static const Driver& get();

  // Returns the driver's name for a result, such as CUDA_ERROR_INVALID_VALUE.
  std::string name_of(CUresult result) const;
  // Returns the driver's text for a result; empty: it has none.
  std::string describe(CUresult result) const;

  SharedLibrary library;
  Entry<decltype(&::cuInit)> init{library, "cuInit"};
  Entry<decltype(&::cuGetErrorName)> get_error_name{library, "cuGetErrorName"};
  Entry<decltype(&::cuGetErrorString)> get_error_string{library, "cuGetErrorString"};
  Entry<decltype(&::cuDriverGetVersion)> driver_get_version{library, "cuDriverGetVersion"};
  Entry<decltype(&::cuDeviceGetCount)> device_get_count{library, "cuDeviceGetCount"};
  Entry<decltype(&::cuDeviceGet)> device_get{library, "cuDeviceGet"};
  Entry<decltype(&::cuDeviceGetName)> device_get_name{library, "cuDeviceGetName"};
  Entry<decltype(&::cuDeviceGetUuid)> device_get_uuid{library, "cuDeviceGetUuid_v2"};
  Entry<decltype(&::cuDeviceGetPCIBusId)> device_get_pci_bus_id{library, "cuDeviceGetPCIBusId"};
  Entry<decltype(&::cuDeviceGetAttribute)> device_get_attribute{library, "cuDeviceGetAttribute"};
  Entry<decltype(&::cuDevicePrimaryCtxRetain)> primary_context_retain{library,
                                                                      "cuDevicePrimaryCtxRetain"};
  Entry<decltype(&::cuDevicePrimaryCtxRelease)> primary_context_release{
      library, "cuDevicePrimaryCtxRelease_v2"};
  Entry<decltype(&::cuDevicePrimaryCtxGetState)> primary_context_get_state{
      library, "cuDevicePrimaryCtxGetState"};
  Entry<decltype(&::cuDeviceCanAccessPeer)> can_access_peer{library, "cuDeviceCanAccessPeer"};
  Entry<decltype(&::cuDeviceGetP2PAttribute)> peer_attribute{library, "cuDeviceGetP2PAttribute"};
  Entry<decltype(&::cuCtxEnablePeerAccess)> enable_peer_access{library, "cuCtxEnablePeerAccess"};
  Entry<decltype(&::cuCtxPushCurrent)> context_push{library, "cuCtxPushCurrent_v2"};
  Entry<decltype(&::cuCtxPopCurrent)> context_pop{library, "cuCtxPopCurrent_v2"};
  Entry<CUresult (*)()> context_synchronize{library, "cuCtxSynchronize"};
  Entry<decltype(&::cuCtxGetLimit)> context_get_limit{library, "cuCtxGetLimit"};
  Entry<decltype(&::cuCtxSetLimit)> context_set_limit{library, "cuCtxSetLimit"};
  Entry<decltype(&::cuCtxGetStreamPriorityRange)> stream_priority_range{
      library, "cuCtxGetStreamPriorityRange"};
  Entry<decltype(&::cuLibraryLoadData)> library_load_data{library, "cuLibraryLoadData"};
  Entry<decltype(&::cuLibraryUnload)> library_unload{library, "cuLibraryUnload"};
  Entry<decltype(&::cuLibraryGetKernel)> library_get_kernel{library, "cuLibraryGetKernel"};
  Entry<decltype(&::cuKernelGetFunction)> kernel_get_function{library, "cuKernelGetFunction"};
  Entry<decltype(&::cuLinkCreate)> link_create{library, "cuLinkCreate_v2"};
  Entry<decltype(&::cuLinkAddData)> link_add_data{library, "cuLinkAddData_v2"};
  Entry<decltype(&::cuLinkComplete)> link_complete{library, "cuLinkComplete"};
  Entry<decltype(&::cuLinkDestroy)> link_destroy{library, "cuLinkDestroy"};
  Entry<decltype(&::cuFuncGetAttribute)> function_get_attribute{library, "cuFuncGetAttribute"};
  Entry<decltype(&::cuFuncSetAttribute)> function_set_attribute{library, "cuFuncSetAttribute"};
  Entry<decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessor)> occupancy_blocks{
      library, "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
  Entry<decltype(&::cuOccupancyMaxActiveClusters)> occupancy_clusters{
      library, "cuOccupancyMaxActiveClusters"};
  Entry<decltype(&::cuLaunchKernelEx)> launch_kernel{library, "cuLaunchKernelEx"};
  Entry<decltype(&::cuStreamCreateWithPriority)> stream_create{library,
                                                               "cuStreamCreateWithPriority"};
  Entry<decltype(&::cuStreamDestroy)> stream_destroy{library, "cuStreamDestroy_v2"};
  Entry<decltype(&::cuStreamQuery)> stream_query{library, "cuStreamQuery"};
  Entry<decltype(&::cuStreamSynchronize)> stream_synchronize{library, "cuStreamSynchronize"};
  Entry<decltype(&::cuStreamWaitEvent)> stream_wait_event{library, "cuStreamWaitEvent"};
  Entry<decltype(&::cuEventCreate)> event_create{library, "cuEventCreate"};
  Entry<decltype(&::cuEventRecord)> event_record{library, "cuEventRecord"};
  Entry<decltype(&::cuEventSynchronize)> event_synchronize{library, "cuEventSynchronize"};
  Entry<decltype(&::cuEventDestroy)> event_destroy{library, "cuEventDestroy_v2"};
  Entry<decltype(&::cuMemAlloc)> memory_alloc{library, "cuMemAlloc_v2"};
  Entry<decltype(&::cuMemFree)> memory_free{library, "cuMemFree_v2"};
  Entry<decltype(&::cuMemcpyHtoD)> copy_to_device{library, "cuMemcpyHtoD_v2"};
  Entry<decltype(&::cuMemcpyHtoDAsync)> copy_to_device_async{library, "cuMemcpyHtoDAsync_v2"};
  Entry<decltype(&::cuMemcpyDtoHAsync)> copy_to_host_async{library, "cuMemcpyDtoHAsync_v2"};
  Entry<decltype(&::cuMemcpyDtoDAsync)> copy_on_device_async{library, "cuMemcpyDtoDAsync_v2"};
  Entry<decltype(&::cuMemsetD8Async)> memset_async{library, "cuMemsetD8Async"};
  Entry<decltype(&::cuStreamWriteValue64)> stream_write_value{library, "cuStreamWriteValue64_v2"};
  Entry<decltype(&::cuStreamWaitValue64)> stream_wait_value{library, "cuStreamWaitValue64_v2"};
  Entry<decltype(&::cuLaunchHostFunc)> launch_host_function{library, "cuLaunchHostFunc"};
  Entry<decltype(&::cuMemHostAlloc)> host_alloc{library, "cuMemHostAlloc"};
  Entry<decltype(&::cuMemFreeHost)> host_free{library, "cuMemFreeHost"};
  Entry<decltype(&::cuMemHostGetDevicePointer)> host_device_pointer{library,
                                                                    "cuMemHostGetDevicePointer_v2"};
  Entry<decltype(&::cuGraphCreate)> graph_create{library, "cuGraphCreate"};
  Entry<decltype(&::cuGraphDestroy)> graph_destroy{library, "cuGraphDestroy"};
  Entry<decltype(&::cuGraphAddKernelNode)> graph_add_kernel{library, "cuGraphAddKernelNode_v2"};
  Entry<decltype(&::cuGraphAddMemcpyNode)> graph_add_copy{library, "cuGraphAddMemcpyNode"};
  Entry<decltype(&::cuGraphAddMemsetNode)> graph_add_memset{library, "cuGraphAddMemsetNode"};
  Entry<decltype(&::cuGraphAddHostNode)> graph_add_host_function{library, "cuGraphAddHostNode"};
  Entry<decltype(&::cuGraphAddEventRecordNode)> graph_add_record{library,
                                                                 "cuGraphAddEventRecordNode"};
  Entry<decltype(&::cuGraphAddEventWaitNode)> graph_add_wait{library, "cuGraphAddEventWaitNode"};
  Entry<decltype(&::cuGraphAddMemAllocNode)> graph_add_alloc{library, "cuGraphAddMemAllocNode"};
  Entry<decltype(&::cuGraphAddMemFreeNode)> graph_add_free{library, "cuGraphAddMemFreeNode"};
  Entry<decltype(&::cuGraphKernelNodeSetAttribute)> graph_set_attribute{
      library, "cuGraphKernelNodeSetAttribute"};
  // cuda.h of CUDA 13 has another function by this name.
  Entry<CUresult (*)(CUgraph, const CUgraphNode*, const CUgraphNode*, size_t)>
      graph_add_dependencies{library, "cuGraphAddDependencies"};
  // Conditional nodes, of CUDA 12.3. cuda.h of CUDA 13 has another cuGraphAddNode.
  Entry<decltype(&::cuGraphConditionalHandleCreate)> graph_conditional_handle{
      library, "cuGraphConditionalHandleCreate", OptionalEntry()};
  Entry<CUresult (*)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraphNodeParams*)>
      graph_add_node{library, "cuGraphAddNode", OptionalEntry()};
  Entry<decltype(&::cuGraphInstantiate)> graph_instantiate{library, "cuGraphInstantiateWithFlags"};
  Entry<decltype(&::cuGraphExecKernelNodeSetParams)> graph_exec_set_kernel{
      library, "cuGraphExecKernelNodeSetParams_v2"};
  Entry<decltype(&::cuGraphUpload)> graph_upload{library, "cuGraphUpload"};
  Entry<decltype(&::cuGraphLaunch)> graph_launch{library, "cuGraphLaunch"};
  Entry<decltype(&::cuGraphExecDestroy)> graph_exec_destroy{library, "cuGraphExecDestroy"};
  // Green contexts, of CUDA 12.4; and their streams, of 12.5.
  Entry<decltype(&::cuDeviceGetDevResource)> device_get_resource{library, "cuDeviceGetDevResource",
                                                                 OptionalEntry()};
  Entry<decltype(&::cuDevSmResourceSplitByCount)> split_sms{library, "cuDevSmResourceSplitByCount",
                                                            OptionalEntry()};
  Entry<decltype(&::cuDevResourceGenerateDesc)> describe_resource{
      library, "cuDevResourceGenerateDesc", OptionalEntry()};
  Entry<decltype(&::cuGreenCtxCreate)> green_context_create{library, "cuGreenCtxCreate",
                                                            OptionalEntry()};
  Entry<decltype(&::cuGreenCtxDestroy)> green_context_destroy{library, "cuGreenCtxDestroy",
                                                              OptionalEntry()};
  Entry<decltype(&::cuCtxFromGreenCtx)> context_from_green{library, "cuCtxFromGreenCtx",
                                                           OptionalEntry()};
  Entry<decltype(&::cuGreenCtxStreamCreate)> green_stream_create{library, "cuGreenCtxStreamCreate",
                                                                 OptionalEntry()};

 private:
  explicit Driver(const char* path);
};

template <typename... Arguments>
CudaFailure Entry<CUresult (*)(Arguments...)>::failure(const char* const call,
                                                       const CUresult result) {
  const Driver& driver = Driver::get();
  return CudaFailure(call, driver.name_of(result), driver.describe(result));
}

}  // namespace tbsched::cuda
