// A stand-in for libcupti.so, and for what captures call of libcuda.so, to rehearse them without a
// GPU: it delivers the records that a test plays. FAKE_CUPTI_BUSY=1: another profiler has
// subscribed; FAKE_CUPTI_BUSY=call: it ends as a call of CUDA does. FAKE_CUPTI_STEP: ns that pass
// whenever the time is asked for.
// FAKE_CUPTI_CLOCK=1: real time passes.
#include <cupti.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

struct Buffer {
  uint8_t* bytes = nullptr;
  size_t size = 0;
  size_t used = 0;
  size_t most_records = 0;
  size_t records = 0;
};

std::mutex mutex;
Buffer buffer;
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
CUpti_CallbackFunc callback = nullptr;
void* callback_argument = nullptr;
bool was_called = false;  // the driver
uint64_t host_memory[256];
uint64_t* addressed = host_memory;               // to which kernels have addresses
constexpr uint64_t kGpuMemory = 0x7f0000000000;  // address of an allocation of the GPU
uint32_t gpu_memory[64];
std::atomic<bool> addresses_gpu = false;  // kernels have the address of the third word there
std::atomic<bool> copies_wait = false;    // copies from there never end
std::atomic<int> copies = 0;              // that were asked for
constexpr uint64_t kOwnStream = 99;       // the first stream that is made in the capture itself
std::set<CUpti_ActivityKind> kinds;
std::map<CUpti_CallbackDomain, std::set<CUpti_CallbackId>> calls;      // whose records are on
std::map<CUpti_CallbackDomain, std::set<CUpti_CallbackId>> left_out;   // though all others are on
std::map<CUpti_CallbackDomain, std::set<CUpti_CallbackId>> callbacks;  // that are on
int flushes = 0;
int questions = 0;           // about streams
size_t parameter_count = 1;  // of each kernel of a graph, of 200 bytes, as tbsched_probe has
const std::map<CUpti_CallbackId, const char*> driver_names = {
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel"},
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, "cuLaunchKernelEx"},
    {CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, "cuGraphLaunch"},
    {CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags"},
    {CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, "cuMemAlloc_v2"},
    {CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, "cuMemFree_v2"},
    {CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync_v2"},
    {CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync_v2"},
    {CUPTI_DRIVER_TRACE_CBID_cuEventRecord, "cuEventRecord"},
    {CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, "cuStreamWaitEvent"},
    {CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, "cuStreamSynchronize"},
    {CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, "cuCtxSynchronize"},
    {CUPTI_DRIVER_TRACE_CBID_cuModuleGetTexRef, "cuCtxSynchronize_v9"},  // one of a later CUDA
    {CUPTI_DRIVER_TRACE_CBID_cuMemcpy2D_v2_ptds, "cuMemcpy2D_v2_ptds"},
    {CUPTI_DRIVER_TRACE_CBID_cuGraphUpload, "cuGraphUpload"},
    {CUPTI_DRIVER_TRACE_CBID_cuEventDestroy_v2, "cuEventDestroy_v2"},
    {CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, "cuStreamBeginCapture_v2"},
    {CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, "cuStreamEndCapture"}};
const std::map<CUpti_CallbackId, const char*> runtime_names = {
    {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel_v7000"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, "cudaMemcpyAsync_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, "cudaMemcpy_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, "cudaMemsetAsync_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, "cudaEventRecord_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020, "cudaStreamWaitEvent_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, "cudaStreamSynchronize_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020, "cudaEventSynchronize_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, "cudaDeviceSynchronize_v3020"}};

const std::map<CUpti_CallbackId, const char*>& names_of(const CUpti_CallbackDomain domain) {
  return domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver_names : runtime_names;
}

// Handles of the driver are their numbers.
uint64_t number(const void* const handle) { return reinterpret_cast<uintptr_t>(handle); }

template <typename Handle>
Handle handle(const uint64_t number) {
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(number));
}

// CUPTI's names live as long as the process.
const char* kept(const char* const name) {
  static auto& names = *new std::set<std::string>();
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

// A node that a test has added to a graph. The handle of a function is its name.
struct Node {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  bool is_cooperative = false;
  uint64_t other = 0;  // the child graph, or the event
};
struct Edge {
  uint64_t from;
  uint64_t to;
  bool programmatic;
};
struct PlayedGraph {
  std::vector<uint64_t> nodes;
  std::vector<Edge> edges;
};
std::map<uint64_t, PlayedGraph> graphs;
std::map<uint64_t, Node> nodes;

void deliver() {
  const Buffer full = buffer;
  buffer = {};
  if (full.bytes != nullptr) complete(nullptr, 0, full.bytes, full.size, full.used);
}

template <typename Record>
void put(const Record& record) {
  const std::lock_guard lock(mutex);
  if (request == nullptr || !kinds.contains(static_cast<CUpti_ActivityKind>(record.kind))) return;
  constexpr size_t size = (sizeof(Record) + 7) / 8 * 8;
  if (buffer.bytes != nullptr && buffer.used + size > buffer.size) deliver();
  if (buffer.bytes == nullptr) request(&buffer.bytes, &buffer.size, &buffer.most_records);
  if (buffer.bytes == nullptr) return;
  std::memcpy(buffer.bytes + buffer.used, &record, sizeof record);
  buffer.used += size;
  if (++buffer.records == buffer.most_records) deliver();
}

size_t size_of(const CUpti_Activity& record) {
  const auto rounded = [](const size_t size) { return (size + 7) / 8 * 8; };
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return rounded(sizeof(CUpti_ActivityKernel10));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return rounded(sizeof(CUpti_ActivityMemcpy6));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return rounded(sizeof(CUpti_ActivityMemset4));
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return rounded(sizeof(CUpti_ActivityCudaEvent2));
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return rounded(sizeof(CUpti_ActivitySynchronization2));
    case CUPTI_ACTIVITY_KIND_STREAM:
      return rounded(sizeof(CUpti_ActivityStream));
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return rounded(sizeof(CUpti_ActivityContext3));
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return rounded(sizeof(CUpti_ActivityDevice5));
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return rounded(sizeof(CUpti_ActivityOverhead3));
    default:
      return rounded(sizeof(CUpti_ActivityAPI));
  }
}

void call_back(const CUpti_CallbackDomain domain, const CUpti_CallbackId id,
               const void* const data) {
  if (callbacks[domain].contains(id)) callback(callback_argument, domain, id, data);
}

CUpti_ActivityKind kind_of(const CUpti_CallbackDomain domain) {
  return domain == CUPTI_CB_DOMAIN_DRIVER_API ? CUPTI_ACTIVITY_KIND_DRIVER
                                              : CUPTI_ACTIVITY_KIND_RUNTIME;
}

// Which functions are recorded of those whose records are all on, or all off.
void choose(const CUpti_CallbackDomain domain, const CUpti_CallbackId id, const bool is_on) {
  is_on ? void(calls[domain].insert(id)) : void(calls[domain].erase(id));
  is_on ? void(left_out[domain].erase(id)) : void(left_out[domain].insert(id));
}

// Turning all of a domain on or off overrides a choice that was made before.
void take_all_back(const CUpti_ActivityKind kind) {
  for (const auto domain : {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API}) {
    if (kind == kind_of(domain)) left_out[domain].clear();
  }
}

// Whether calls of a function are recorded.
bool records(const CUpti_CallbackDomain domain, const CUpti_CallbackId id) {
  // A process that has used CUDA before cannot choose functions.
  const bool chosen = calls[domain].contains(id) && std::getenv("FAKE_CUPTI_LATE") == nullptr;
  return chosen || (kinds.contains(kind_of(domain)) && !left_out[domain].contains(id));
}

// Calls action(domain, id) for the functions of a name without its version.
template <typename Action>
void for_each_named(const std::string& name, const Action& action) {
  for (const auto domain : {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API}) {
    for (const auto& [id, known] : names_of(domain)) {
      if (std::string(known).substr(0, std::string(known).find('_')) == name) action(domain, id);
    }
  }
}

// Arguments: addresses of the host, whatever the kernel takes; or one of the GPU, and small
// numbers.
void** arguments() {
  if (addresses_gpu) {
    static std::vector<uint64_t> bytes(512, 1);
    bytes[0] = kGpuMemory + 8;
    static std::vector<void*> own(64, bytes.data());
    return own.data();
  }
  static std::map<const uint64_t*, std::pair<std::vector<const void*>, std::vector<const void*>>>
      all;
  auto& [bytes, own] = all[addressed];
  bytes.assign(512, addressed);
  own.assign(64, bytes.data());
  return const_cast<void**>(own.data());
}

// Which ends of a driver call are played.
enum Sides { kBoth = 0, kEntry = 1, kExit = 2 };

void call_back(const CUpti_CallbackId id, const void* const parameters, const uint32_t call,
               const Sides sides = kBoth, const char* const symbol = nullptr,
               const CUresult result = CUDA_SUCCESS) {
  CUpti_CallbackData data{};
  data.functionParams = parameters;
  data.context = handle<CUcontext>(1);
  data.contextUid = 1;
  data.correlationId = call;
  data.symbolName = symbol;
  if (sides != kExit) {
    data.callbackSite = CUPTI_API_ENTER;
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
  }
  if (sides != kEntry) {
    data.functionReturnValue = const_cast<CUresult*>(&result);
    data.callbackSite = CUPTI_API_EXIT;
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
  }
}

}  // namespace

extern "C" {

CUresult cuCtxSynchronize() {
  was_called = true;
  return CUDA_SUCCESS;
}
// Stream 13 is urgent and does not wait for the null stream; 15 is of a green context.
CUresult cuStreamGetFlags(const CUstream stream, unsigned* const flags) {
  ++questions;
  *flags = number(stream) == 13 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  return CUDA_SUCCESS;
}
CUresult cuStreamGetPriority(const CUstream stream, int* const priority) {
  ++questions;
  *priority = number(stream) == 13 ? -1 : 0;
  return CUDA_SUCCESS;
}
#if CUDA_VERSION >= 12050
CUresult cuStreamGetCtx_v2(const CUstream stream, CUcontext*, CUgreenCtx* const green) {
  *green = number(stream) == 15 ? handle<CUgreenCtx>(1) : nullptr;
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxGetDevResource(CUgreenCtx, CUdevResource* const resource, CUdevResourceType) {
  resource->sm.smCount = 16;
  return CUDA_SUCCESS;
}
#endif
CUresult cuDeviceGetName(char* const name, const int length, CUdevice) {
  std::strncpy(name, "Fake H100", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* const value, const CUdevice_attribute which, CUdevice) {
  const bool is_count = which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
  *value = is_count ? 132 : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(const CUgraph graph, CUgraphNode* const found, size_t* const count) {
  const std::vector<uint64_t>& own = graphs[number(graph)].nodes;
  for (size_t each = 0; found != nullptr && each < own.size(); ++each) {
    found[each] = handle<CUgraphNode>(own[each]);
  }
  *count = own.size();
  return CUDA_SUCCESS;
}
CUresult cuGraphGetEdges_v2(const CUgraph graph, CUgraphNode* const from, CUgraphNode* const to,
                            CUgraphEdgeData* const data, size_t* const count) {
  const std::vector<Edge>& own = graphs[number(graph)].edges;
  for (size_t each = 0; from != nullptr && each < own.size(); ++each) {
    from[each] = handle<CUgraphNode>(own[each].from);
    to[each] = handle<CUgraphNode>(own[each].to);
    data[each].type = own[each].programmatic ? CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
                                             : CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
  }
  *count = own.size();
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(const CUgraphNode node, CUgraphNodeType* const type) {
  *type = nodes[number(node)].type;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams_v2(const CUgraphNode node,
                                       CUDA_KERNEL_NODE_PARAMS_v2* const given) {
  *given = nodes[number(node)].kernel;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetAttribute(const CUgraphNode node, const CUlaunchAttributeID id,
                                       CUlaunchAttributeValue* const value) {
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    value->cooperative = nodes[number(node)].is_cooperative;
  return CUDA_SUCCESS;
}
CUresult cuGraphChildGraphNodeGetGraph(const CUgraphNode node, CUgraph* const child) {
  *child = handle<CUgraph>(nodes[number(node)].other);
  return CUDA_SUCCESS;
}
CUresult cuGraphEventWaitNodeGetEvent(const CUgraphNode node, CUevent* const event) {
  *event = handle<CUevent>(nodes[number(node)].other);
  return CUDA_SUCCESS;
}
CUresult cuGraphEventRecordNodeGetEvent(const CUgraphNode node, CUevent* const event) {
  return cuGraphEventWaitNodeGetEvent(node, event);
}
CUresult cuFuncGetName(const char** const name, const CUfunction function) {
  *name = reinterpret_cast<const char*>(function);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent_v2(CUcontext*) { return CUDA_SUCCESS; }
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) { return CUDA_SUCCESS; }
CUresult cuStreamCreate(CUstream* const stream, const unsigned flags) {
  *stream = handle<CUstream>(kOwnStream);
  return flags == CU_STREAM_NON_BLOCKING ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
// A stream that is done counts as one that was waited for, with a record but no callback.
CUresult cuStreamQuery(const CUstream stream) {
  if (copies_wait) return CUDA_ERROR_NOT_READY;
  CUpti_ActivitySynchronization2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  record.correlationId = 890;
  record.contextId = 1;
  record.streamId = number(stream);
  record.start = record.end = 1;
  put(record);
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** const memory, const size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttributes(const unsigned count, CUpointer_attribute* const names,
                                void** const values, const CUdeviceptr address) {
  const bool is_inside = address >= kGpuMemory && address < kGpuMemory + sizeof gpu_memory;
  for (unsigned each = 0; each < count; ++each) {
    switch (names[each]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<CUmemorytype*>(values[each]) =
            is_inside ? CU_MEMORYTYPE_DEVICE : CUmemorytype{};
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(values[each]) = 0;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(values[each]) = is_inside ? 0 : -2;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *static_cast<CUdeviceptr*>(values[each]) = is_inside ? kGpuMemory : 0;
        break;
      default:
        *static_cast<size_t*>(values[each]) = is_inside ? sizeof gpu_memory : 0;
    }
  }
  return CUDA_SUCCESS;
}
// As a copy of the program, it calls back, and has a record.
CUresult cuMemcpyDtoHAsync_v2(void* const to, const CUdeviceptr from, const size_t bytes,
                              const CUstream stream) {
  const auto call = static_cast<uint32_t>(900 + copies++);
  const cuMemcpyDtoHAsync_v2_params parameters{to, from, bytes, stream};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, &parameters, call);
  CUpti_ActivityMemcpy6 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  record.correlationId = call;
  record.start = record.end = 1;
  put(record);
  std::memcpy(to, reinterpret_cast<const char*>(gpu_memory) + (from - kGpuMemory), bytes);
  return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* const state, CUfunction) {
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction, const size_t number, size_t* const offset,
                            size_t* const size) {
  if (number >= parameter_count) return CUDA_ERROR_INVALID_VALUE;
  *offset = 200 * number;
  *size = 200;
  return CUDA_SUCCESS;
}

CUptiResult cuptiGetVersion(uint32_t* const version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(const CUptiResult, const char** const name) {
  *name = "CUPTI_ERROR_OF_THE_FAKE";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(uint64_t* const now) {
  static std::atomic<uint64_t> next = 1'000'000;
  if (std::getenv("FAKE_CUPTI_CLOCK") != nullptr) {  // real time
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    *now = static_cast<uint64_t>(since / std::chrono::nanoseconds(1));
    return CUPTI_SUCCESS;
  }
  const char* const step = std::getenv("FAKE_CUPTI_STEP");
  *now = next.fetch_add(step == nullptr ? 0 : std::strtoul(step, nullptr, 10));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(const CUpti_CallbackDomain domain, const uint32_t id,
                                 const char** const name) {
  const auto& names = names_of(domain);
  const auto found = names.find(id);
  if (found == names.end()) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = found->second;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* const handle, const CUpti_CallbackFunc function,
                           void* const argument) {
  const char* const other = std::getenv("FAKE_CUPTI_BUSY");
  const bool other_stays = other != nullptr && !(was_called && std::string(other) == "call");
  if (other_stays || callback != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  *handle = nullptr;
  callback = function;
  callback_argument = argument;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  callback = nullptr;
  callbacks.clear();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(const uint32_t enable, CUpti_SubscriberHandle,
                                const CUpti_CallbackDomain domain, const CUpti_CallbackId id) {
  enable != 0 ? void(callbacks[domain].insert(id)) : void(callbacks[domain].erase(id));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(const CUpti_BuffersCallbackRequestFunc requested,
                                           const CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(const CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_KERNEL) return CUPTI_ERROR_NOT_COMPATIBLE;  // it would serialise
  kinds.insert(kind);
  take_all_back(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableAndDump(const CUpti_ActivityKind kind) {
  return cuptiActivityEnable(kind);
}
CUptiResult cuptiActivityDisable(const CUpti_ActivityKind kind) {
  kinds.erase(kind);
  take_all_back(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableDriverApi(const CUpti_CallbackId id, const uint8_t enable) {
  choose(CUPTI_CB_DOMAIN_DRIVER_API, id, enable != 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableRuntimeApi(const CUpti_CallbackId id, const uint8_t enable) {
  choose(CUPTI_CB_DOMAIN_RUNTIME_API, id, enable != 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushAll(uint32_t) {
  const std::lock_guard lock(mutex);
  ++flushes;
  deliver();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* const bytes, const size_t used,
                                       CUpti_Activity** const record) {
  auto* next = *record == nullptr ? bytes : reinterpret_cast<uint8_t*>(*record) + size_of(**record);
  if (next >= bytes + used) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* const dropped) {
  const char* const given = std::getenv("FAKE_CUPTI_DROPPED");
  *dropped = given == nullptr ? 0 : std::strtoul(given, nullptr, 10);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetStreamIdEx(CUcontext, const CUstream stream, uint8_t, uint32_t* const id) {
  ++questions;
  *id = static_cast<uint32_t>(number(stream));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetDeviceId(CUcontext, uint32_t* const id) {
  *id = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetGraphExecId(const CUgraphExec graph, uint32_t* const id) {
  *id = static_cast<uint32_t>(number(graph));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetGraphNodeId(const CUgraphNode node, uint64_t* const id) {
  *id = number(node);
  return CUPTI_SUCCESS;
}

// What a test asks.
int fake_records(const char* const name) {
  bool is_one = false;
  for_each_named(name, [&](const CUpti_CallbackDomain domain, const CUpti_CallbackId id) {
    is_one |= records(domain, id);
  });
  return is_one ? 1 : 0;
}
int fake_flushes() { return flushes; }
int fake_questions() { return questions; }

// What a test plays. Times are nanoseconds since the capture started.
constexpr uint64_t kStarted = 1'000'000;

void fake_device(const char* const name, const uint32_t sms) {
  CUpti_ActivityDevice5 record{};
  record.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  record.name = kept(name);
  record.numMultiprocessors = sms;
  record.computeCapabilityMajor = 9;
  put(record);
}
void fake_context(const uint32_t context, const uint16_t null_stream, const uint32_t parent,
                  const uint16_t sms) {
  CUpti_ActivityContext3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  record.contextId = context;
  record.nullStreamId = null_stream;
  record.isGreenContext = sms > 0;
  record.parentContextId = parent;
  record.numMultiprocessors = sms;
  put(record);
}
void fake_stream(const uint32_t context, const uint32_t stream, const uint32_t flag,
                 const int32_t priority) {
  CUpti_ActivityStream record{};
  record.kind = CUPTI_ACTIVITY_KIND_STREAM;
  record.contextId = context;
  record.streamId = stream;
  record.flag = static_cast<CUpti_ActivityStreamFlag>(flag);
  record.priority = static_cast<uint32_t>(priority);
  put(record);
}
void fake_call(const char* const name, const uint32_t call, const uint32_t thread,
               const uint64_t start, const uint64_t end) {
  CUpti_ActivityAPI record{};
  for_each_named(name, [&](const CUpti_CallbackDomain domain, const CUpti_CallbackId id) {
    if (!records(domain, id)) return;
    record.kind = kind_of(domain);
    record.cbid = id;
  });
  if (record.cbid == 0) return;
  record.start = kStarted + start;
  record.end = kStarted + end;
  record.threadId = thread;
  record.correlationId = call;
  const bool is_on = !kinds.insert(record.kind).second;
  put(record);
  if (!is_on) kinds.erase(record.kind);
}
void fake_kernel(const char* const name, const uint32_t call, const uint32_t context,
                 const uint32_t stream, const uint64_t start, const uint64_t end,
                 const int32_t grid, const int32_t block, const uint16_t registers,
                 const uint64_t node, const int32_t shared) {
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = kept(name);
  record.correlationId = call;
  record.contextId = context;
  record.streamId = stream;
  record.start = end == 0 ? 0 : kStarted + start;
  record.end = end == 0 ? 0 : kStarted + end;
  record.gridX = grid;
  record.gridY = record.gridZ = record.blockY = record.blockZ = 1;
  record.blockX = block;
  record.registersPerThread = registers;
  record.staticSharedMemory = shared;
  record.dynamicSharedMemory = 512;
  record.clusterX = 2;
  record.clusterY = record.clusterZ = 1;
  record.isSharedMemoryCarveoutRequested = 1;
  record.sharedMemoryCarveoutRequested = 50;
  record.sharedMemoryExecuted = 102400;
  record.channelID = 3;
  record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  record.graphNodeId = node;
  record.graphId = node > 0 ? 5 : 0;
  put(record);
}
void fake_copy(const uint32_t call, const uint32_t stream, const uint64_t start, const uint64_t end,
               const uint64_t bytes, const bool pinned, const bool async) {
  CUpti_ActivityMemcpy6 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  record.srcKind = pinned ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED : CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  record.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  record.flags = async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  record.bytes = bytes;
  record.correlationId = call;
  record.contextId = 1;
  record.streamId = stream;
  record.start = kStarted + start;
  record.end = kStarted + end;
  put(record);
}
void fake_memset(const uint32_t call, const uint32_t stream, const uint64_t start,
                 const uint64_t end, const uint64_t bytes) {
  CUpti_ActivityMemset4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  record.flags = CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC;
  record.bytes = bytes;
  record.correlationId = call;
  record.contextId = 1;
  record.streamId = stream;
  record.start = kStarted + start;
  record.end = kStarted + end;
  put(record);
}
void fake_event(const uint32_t event, const uint32_t call, const uint32_t stream) {
  CUpti_ActivityCudaEvent2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  record.eventId = event;
  record.correlationId = call;
  record.contextId = 1;
  record.streamId = stream;
  put(record);
}
void fake_wait(const uint32_t type, const uint32_t call, const uint64_t start, const uint64_t end,
               const uint32_t stream, const uint32_t event) {
  CUpti_ActivitySynchronization2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  record.type = static_cast<CUpti_ActivitySynchronizationType>(type);
  record.correlationId = call;
  record.contextId = 1;
  record.start = kStarted + start;
  record.end = kStarted + end;
  record.streamId = stream > 0 ? stream : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  record.cudaEventId = event > 0 ? event : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  put(record);
}
void fake_overhead(const uint32_t what, const uint32_t call, const uint64_t start,
                   const uint64_t end) {
  CUpti_ActivityOverhead3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  record.overheadKind = static_cast<CUpti_ActivityOverheadKind>(what);
  record.correlationId = call;
  record.start = kStarted + start;
  record.end = kStarted + end;
  put(record);
}
void fake_attributes(const uint32_t call, const int32_t programmatic, const int32_t priority) {
  CUlaunchAttribute attributes[2]{};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = programmatic;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attributes[1].value.priority = priority;
  CUlaunchConfig config{};
  config.attrs = attributes;
  config.numAttrs = 2;
  const cuLaunchKernelEx_params parameters{&config, nullptr, nullptr, nullptr};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &parameters, call);
}
// Calls that issue something, or wait. `sides`: 0 both, 1 the call began, 2 it returned.
void fake_issue_launch(const char* const name, const uint32_t call, const uint64_t stream,
                       const uint32_t grid, const uint32_t block, const int sides,
                       const int result) {
  cuLaunchKernel_params parameters{};
  parameters.kernelParams = arguments();
  parameters.f = handle<CUfunction>(77);
  parameters.gridDimX = grid;
  parameters.gridDimY = parameters.gridDimZ = parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.blockDimX = block;
  parameters.sharedMemBytes = 512;
  parameters.hStream = handle<CUstream>(stream);
  call_back(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &parameters, call, Sides(sides), name,
            CUresult(result));
}
void fake_write_host() { ++addressed[3]; }
void fake_address_gpu() { addresses_gpu = true; }
void fake_write_gpu(const uint32_t word, const uint32_t value) { gpu_memory[word] = value; }
void fake_hold_copies() { copies_wait = true; }
int fake_copies() { return copies; }
// Kernels have addresses of other words: these, or the last four before memory that is not there.
void fake_address_words(const uint64_t word) { addressed = host_memory + word; }
void fake_address_the_end() {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const end = static_cast<char*>(pages) + page;
  munmap(end, page);
  addressed = reinterpret_cast<uint64_t*>(end) - 4;
}
// Its arguments, of which the first is 5, are in one buffer.
void fake_issue_packed(const char* const name, const uint32_t call, const uint64_t stream) {
  static std::vector<uint64_t> bytes(512, 5);
  static size_t size = 8 * bytes.size();
  static void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                          &size, CU_LAUNCH_PARAM_END};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = handle<CUstream>(stream);
  const cuLaunchKernelEx_params parameters{&config, handle<CUfunction>(77), nullptr, extra};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &parameters, call, kBoth, name);
}
void fake_issue_copy(const uint32_t call, const uint64_t stream, const uint64_t bytes) {
  cuMemcpyHtoDAsync_v2_params parameters{};
  parameters.dstDevice = 4096;
  parameters.srcHost = addressed;
  parameters.ByteCount = bytes;
  parameters.hStream = handle<CUstream>(stream);
  call_back(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, &parameters, call);
}
void fake_issue_memset(const uint32_t call, const uint64_t stream, const uint64_t address,
                       const uint64_t words) {
  const cuMemsetD32Async_params parameters{address, 0, words, handle<CUstream>(stream)};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async, &parameters, call);
}
// Makes an event, whose handle is its number.
void fake_create_event(const uint64_t event, const uint32_t flags) {
  auto made = handle<CUevent>(event);
  const cuEventCreate_params parameters{&made, flags};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuEventCreate, &parameters, 0);
}
void fake_destroy_event(const uint64_t event) {
  const cuEventDestroy_v2_params parameters{handle<CUevent>(event)};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuEventDestroy_v2, &parameters, 0);
}
void fake_issue_record(const uint32_t call, const uint64_t stream, const uint64_t event) {
  const cuEventRecord_params parameters{handle<CUevent>(event), handle<CUstream>(stream)};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuEventRecord, &parameters, call);
}
void fake_issue_wait(const uint32_t call, const uint64_t stream, const uint64_t event) {
  const cuStreamWaitEvent_params parameters{handle<CUstream>(stream), handle<CUevent>(event), 0};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, &parameters, call);
}
// The stream has not ended.
void fake_issue_query(const uint32_t call, const uint64_t stream) {
  const cuStreamQuery_params parameters{handle<CUstream>(stream)};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuStreamQuery, &parameters, call, kBoth, nullptr,
            CUDA_ERROR_NOT_READY);
}
void fake_issue_synchronize(const uint32_t call, const uint64_t stream, const int sides) {
  const cuStreamSynchronize_params parameters{handle<CUstream>(stream)};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, &parameters, call, Sides(sides));
}
void fake_issue_context_synchronize(const uint32_t call, const bool later_version) {
  call_back(later_version ? CUPTI_DRIVER_TRACE_CBID_cuModuleGetTexRef
                          : CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
            nullptr, call);
}
void fake_issue_write_value(const uint32_t call, const uint64_t stream, const bool earlier) {
  const auto address = static_cast<CUdeviceptr>(number(addressed));
  const cuStreamWriteValue32_v2_params parameters{handle<CUstream>(stream), address, 1, 0};
  call_back(earlier ? CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32
                    : CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_v2,
            &parameters, call);
}
// A call that begins; its parameters are zeros.
void fake_enter(const char* const name, const uint32_t call) {
  const std::vector<uint64_t> parameters(16);
  for (const auto& [id, known] : driver_names) {
    if (std::string(known) == name) call_back(id, parameters.data(), call, kEntry);
  }
}
void fake_issue_free(const uint32_t call, const int sides) {
  const cuMemFree_v2_params parameters{};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, &parameters, call, Sides(sides));
}
void fake_set_carveout(const int32_t percent) {
  const cuFuncSetAttribute_params parameters{
      handle<CUfunction>(77), CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuFuncSetAttribute, &parameters, 0);
}
void fake_stream_capture(const bool begins, const int result) {
  const cuStreamBeginCapture_v2_params parameters{};
  call_back(begins ? CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2
                   : CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,
            &parameters, 0, kBoth, nullptr, CUresult(result));
}
void fake_graph_launch(const uint32_t call, const uint64_t executable, const uint64_t stream) {
  const cuGraphLaunch_params parameters{handle<CUgraphExec>(executable), handle<CUstream>(stream)};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, &parameters, call);
}
void fake_parameters(const uint64_t count) { parameter_count = count; }
// Nodes of graphs.
void fake_kernel_node(const uint64_t graph, const uint64_t node, const char* const name,
                      const uint32_t grid, const uint32_t block, const uint32_t shared,
                      const bool cooperative) {
  Node& made = nodes[node];
  made.type = CU_GRAPH_NODE_TYPE_KERNEL;
  made.kernel.func = reinterpret_cast<CUfunction>(const_cast<char*>(kept(name)));
  made.kernel.gridDimX = grid;
  made.kernel.gridDimY = made.kernel.gridDimZ = 1;
  made.kernel.blockDimX = block;
  made.kernel.blockDimY = made.kernel.blockDimZ = 1;
  made.kernel.sharedMemBytes = shared;
  made.kernel.kernelParams = arguments();
  made.is_cooperative = cooperative;
  graphs[graph].nodes.push_back(node);
}
// `type`: as CUgraphNodeType; `other`: a child graph or an event.
void fake_node(const uint64_t graph, const uint64_t node, const int type, const uint64_t other) {
  nodes[node].type = static_cast<CUgraphNodeType>(type);
  nodes[node].other = other;
  graphs[graph].nodes.push_back(node);
}
// A conditional node with one body.
void fake_conditional(const uint64_t graph, const uint64_t node, const uint64_t body) {
  fake_node(graph, node, CU_GRAPH_NODE_TYPE_CONDITIONAL, 0);
  auto added = handle<CUgraphNode>(node);
  auto of_body = handle<CUgraph>(body);
  CUgraphNodeParams given{};
  given.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  given.conditional.size = 1;
  given.conditional.phGraph_out = &of_body;
  const cuGraphAddNode_v2_params parameters{&added, handle<CUgraph>(graph), nullptr, nullptr, 0,
                                            &given};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2, &parameters, 0);
}
void fake_graph_edge(const uint64_t graph, const uint64_t from, const uint64_t to,
                     const bool programmatic) {
  graphs[graph].edges.push_back({from, to, programmatic});
}
void fake_instantiate(const uint64_t executable, const uint64_t graph, const int result) {
  auto made = handle<CUgraphExec>(executable);
  const cuGraphInstantiateWithFlags_params parameters{&made, handle<CUgraph>(graph), 0};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, &parameters, 0, kBoth, nullptr,
            CUresult(result));
}
void fake_update(const uint64_t executable, const uint64_t graph) {
  const cuGraphExecUpdate_v2_params parameters{handle<CUgraphExec>(executable),
                                               handle<CUgraph>(graph), nullptr};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2, &parameters, 0);
}
void fake_set_node(const uint64_t executable, const uint64_t node) {
  const cuGraphExecKernelNodeSetParams_v2_params parameters{
      handle<CUgraphExec>(executable), handle<CUgraphNode>(node), &nodes[node].kernel};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2, &parameters, 0);
}
void fake_destroy(const uint64_t executable, const int sides) {
  const cuGraphExecDestroy_params parameters{handle<CUgraphExec>(executable)};
  call_back(CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy, &parameters, 0, Sides(sides));
}
void fake_module(const char* const cubin, const uint64_t size) {
  CUpti_ModuleResourceData module{};
  module.pCubin = cubin;
  module.cubinSize = size;
  CUpti_ResourceData resource{};
  resource.resourceDescriptor = &module;
  call_back(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, &resource);
}
void fake_graph_change(const CUpti_CallbackId id, const uint64_t node, const uint64_t other) {
  CUpti_GraphData graph{};
  graph.node = handle<CUgraphNode>(node);
  graph.originalNode = graph.dependency = handle<CUgraphNode>(other);
  CUpti_ResourceData resource{};
  resource.resourceDescriptor = &graph;
  call_back(CUPTI_CB_DOMAIN_RESOURCE, id, &resource);
}
}
