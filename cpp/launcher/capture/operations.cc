#include "launcher/capture/operations.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <unordered_map>
#include <vector>

#include "launcher/capture/driver.h"

namespace tbsched::capture {
namespace {

// How one callback is read.
struct CallbackRow {
  What what;
  bool per_thread;  // whether the default stream is the thread's own
  void (*read)(Operation&, const void* parameters, CUstream& stream);  // fills in both
};

// Reads the members that the parameters of a call have. `unit`: bytes of a memset's element.
// Parameters of functions with `_ptsz` have the same fields as those without.
template <typename Parameters, uint64_t unit = 1>
void read(Operation& operation, const void* const parameters, CUstream& stream) {
  const auto& given = *static_cast<const Parameters*>(parameters);
  if constexpr (requires { given.hStream; }) stream = given.hStream;
  if constexpr (requires { given.stream; }) stream = given.stream;
  if constexpr (requires { given.hStream; } || requires { given.stream; }) {
    operation.has_stream = true;
  }
  if constexpr (requires { given.ByteCount; }) operation.bytes = given.ByteCount;
  if constexpr (requires { given.N; }) operation.bytes = given.N * unit;
  if constexpr (requires { given.dst; }) operation.address = given.dst;
  if constexpr (requires { given.dstDevice; }) operation.address = given.dstDevice;
  if constexpr (requires { given.dstHost; }) operation.address = handle_value(given.dstHost);
  if constexpr (requires { given.addr; }) operation.address = given.addr;
  if constexpr (requires { given.src; }) operation.source = given.src;
  if constexpr (requires { given.srcDevice; }) operation.source = given.srcDevice;
  if constexpr (requires { given.srcHost; }) operation.source = handle_value(given.srcHost);
  if constexpr (requires { given.hGraph; }) operation.executable = handle_value(given.hGraph);
  if constexpr (requires { given.hEvent; }) operation.event = handle_value(given.hEvent);
  if constexpr (requires { given.gridDimX; }) {
    Shape& shape = operation.shape;
    shape.grid = {given.gridDimX, given.gridDimY, given.gridDimZ};
    shape.block = {given.blockDimX, given.blockDimY, given.blockDimZ};
    shape.dynamic_shared_memory = given.sharedMemBytes;
    shape.function = handle_value(given.f);
    shape.arguments = given.kernelParams;
    if constexpr (requires { given.extra; }) shape.buffer = argument_buffer(given.extra);
  }
}

// Reads no parameters.
void read_nothing(Operation&, const void*, CUstream&) {}

// Reads a copy or memset whose call waits for it: it is in the default stream.
template <typename Parameters, uint64_t unit = 1>
void read_in_default_stream(Operation& operation, const void* const parameters, CUstream& stream) {
  read<Parameters, unit>(operation, parameters, stream);
  operation.has_stream = true;
}

// Reads a call of cuLaunchCooperativeKernel.
void read_cooperative_launch(Operation& operation, const void* const parameters, CUstream& stream) {
  read<cuLaunchCooperativeKernel_params>(operation, parameters, stream);
  operation.shape.cooperative = true;
}

// Reads a call of cuLaunchKernelEx, whose attributes are in a list.
void read_launch(Operation& operation, const void* const parameters, CUstream& stream) {
  const auto& given = *static_cast<const cuLaunchKernelEx_params*>(parameters);
  const CUlaunchConfig& config = *given.config;
  Shape& shape = operation.shape;
  stream = config.hStream;
  operation.has_stream = true;
  shape.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
  shape.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
  shape.dynamic_shared_memory = config.sharedMemBytes;
  shape.function = handle_value(given.f);
  shape.arguments = given.kernelParams;
  shape.buffer = argument_buffer(given.extra);
  for (const CUlaunchAttribute& each : std::span(config.attrs, config.numAttrs)) {
    set_attribute(shape, each.id, each.value);
  }
}

using Rows = std::unordered_map<CUpti_CallbackId, CallbackRow>;

// Returns the row of every callback that is handled.
Rows make_rows(const Cupti& cupti) {
  Rows rows;
  // Adds a function, and its version for the default stream of each thread.
  const auto add = [&](const What what, const CUpti_CallbackId id,
                       const CUpti_CallbackId per_thread_id, const auto reader) {
    rows[id] = {what, false, reader};
    if (per_thread_id != CUPTI_DRIVER_TRACE_CBID_INVALID)
      rows[per_thread_id] = {what, true, reader};
  };
  constexpr auto kNone = CUPTI_DRIVER_TRACE_CBID_INVALID;
  using enum What;
  add(kLaunch, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
      read<cuLaunchKernel_params>);
  add(kLaunch, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
      CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, read_launch);
  add(kLaunch, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
      CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz, read_cooperative_launch);
  add(kGraph, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
      read<cuGraphLaunch_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync, CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz,
      read<cuMemcpyAsync_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz, read<cuMemcpyHtoDAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz, read<cuMemcpyDtoHAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz, read<cuMemcpyDtoDAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync_ptsz, read<cuMemcpyPeerAsync_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2_ptsz, read<cuMemcpy2DAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2_ptsz, read<cuMemcpy3DAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2_ptds,
      read_in_default_stream<cuMemcpyHtoD_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2_ptds,
      read_in_default_stream<cuMemcpyDtoH_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2_ptds,
      read_in_default_stream<cuMemcpyDtoD_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpy, CUPTI_DRIVER_TRACE_CBID_cuMemcpy_ptds,
      read_in_default_stream<cuMemcpy_params>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
      CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz, read<cuMemsetD8Async_params>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async,
      CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz, read<cuMemsetD16Async_params, 2>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
      CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz, read<cuMemsetD32Async_params, 4>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2_ptds,
      read_in_default_stream<cuMemsetD8_v2_params>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2, CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2_ptds,
      read_in_default_stream<cuMemsetD32_v2_params, 4>);
  add(kRecord, CUPTI_DRIVER_TRACE_CBID_cuEventRecord, CUPTI_DRIVER_TRACE_CBID_cuEventRecord_ptsz,
      read<cuEventRecord_params>);
  add(kRecord, CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags,
      CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags_ptsz, read<cuEventRecordWithFlags_params>);
  add(kWait, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz, read<cuStreamWaitEvent_params>);
  add(kWaitValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_ptsz, read<cuStreamWaitValue32_params>);
  add(kWaitValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_ptsz, read<cuStreamWaitValue64_params>);
  add(kWriteValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_ptsz, read<cuStreamWriteValue32_params>);
  add(kWriteValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue64,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue64_ptsz, read<cuStreamWriteValue64_params>);
  add(kWaitValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2_ptsz, read<cuStreamWaitValue32_v2_params>);
  add(kWaitValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_v2_ptsz, read<cuStreamWaitValue64_v2_params>);
  add(kWriteValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_v2_ptsz, read<cuStreamWriteValue32_v2_params>);
  add(kWriteValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue64_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue64_v2_ptsz, read<cuStreamWriteValue64_v2_params>);
  add(kHostFunction, CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc,
      CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc_ptsz, read<cuLaunchHostFunc_params>);
  add(kSynchronize, CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
      CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz, read<cuStreamSynchronize_params>);
  add(kSynchronize, CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, kNone,
      read<cuEventSynchronize_params>);
  // These have versions that the headers may not know.
  constexpr std::array<std::string_view, 10> kOthers = {"cuMemcpy",
                                                        "cuMemset",
                                                        "cuMemPoolTrimTo",
                                                        "cuEventDestroy",
                                                        "cuCtxDestroy",
                                                        "cuArrayDestroy",
                                                        "cuMipmappedArrayDestroy",
                                                        "cuGraphUpload",
                                                        "cuGraphAddKernelNode",
                                                        "cuGraphKernelNodeSetParams"};
  for (CUpti_CallbackId id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; ++id) {
    const char* name = nullptr;
    const bool is_known =
        cupti.callback_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) == CUPTI_SUCCESS;
    if (!is_known || name == nullptr) continue;
    const std::string_view function = name;
    const auto begins = [&](const std::string_view each) { return function.starts_with(each); };
    if (begins("cuCtxSynchronize")) rows[id] = {kSynchronize, false, read_nothing};
    // One of those above issues something that is noted.
    if (std::ranges::any_of(kOthers, begins))
      rows.try_emplace(id, CallbackRow{kOther, false, read_nothing});
  }
  add(kQuery, CUPTI_DRIVER_TRACE_CBID_cuEventQuery, kNone, read<cuEventQuery_params>);
  add(kOther, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery_ptsz,
      read_nothing);  // so a thread that polls does not count as one that calls nothing
  for (const auto id : {CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz}) {
    rows[id] = {kBeginCapture, false, read_nothing};
  }
  for (const auto id : {CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz}) {
    rows[id] = {kEndCapture, false, read_nothing};
  }
  for (const auto id : {CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2,
                        CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2,
                        CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc_v2,
                        CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost,
                        CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister_v2,
                        CUPTI_DRIVER_TRACE_CBID_cuMemHostUnregister,
                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged,
                        CUPTI_DRIVER_TRACE_CBID_cuModuleLoad,
                        CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData,
                        CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx,
                        CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary,
                        CUPTI_DRIVER_TRACE_CBID_cuModuleUnload,
                        CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction,
                        CUPTI_DRIVER_TRACE_CBID_cuModuleGetGlobal_v2,
                        CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData,
                        CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile,
                        CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload,
                        CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel,
                        CUPTI_DRIVER_TRACE_CBID_cuLibraryGetModule,
                        CUPTI_DRIVER_TRACE_CBID_cuLibraryGetGlobal,
                        CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction,
                        CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute,
                        CUPTI_DRIVER_TRACE_CBID_cuKernelSetAttribute,
                        CUPTI_DRIVER_TRACE_CBID_cuFuncGetAttribute,
                        CUPTI_DRIVER_TRACE_CBID_cuFuncSetAttribute,
                        CUPTI_DRIVER_TRACE_CBID_cuFuncLoad,
                        CUPTI_DRIVER_TRACE_CBID_cuEventCreate,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2}) {
    rows[id] = {kOther, false, read_nothing};
  }
  for (const auto id : graph_callbacks()) rows[id] = {kOther, false, read_nothing};
  return rows;
}

// Returns the rows, which are made once.
const Rows& rows(const Cupti& cupti) {
  static const auto& kept = *new Rows(make_rows(cupti));
  return kept;
}

// Returns the row of a callback; null: it has none. An array by callback, as it is asked for at
// each call of the program.
const CallbackRow* row_of(const Cupti& cupti, const CUpti_CallbackId id) {
  static const auto& kept = *new std::vector<std::optional<CallbackRow>>([&] {
    std::vector<std::optional<CallbackRow>> by_id;
    for (const auto& [each, row] : rows(cupti)) {
      if (by_id.size() <= each) by_id.resize(each + 1);
      by_id[each] = row;
    }
    return by_id;
  }());
  return id < kept.size() && kept[id] ? &*kept[id] : nullptr;
}

std::atomic<uint64_t> destroyed_streams = 0;  // how often numbers of streams were forgotten

// Sets the stream of an operation. Returns false if its number is not known. Keeps numbers, since
// asking CUPTI takes longer than a launch may be delayed.
bool set_stream(const Cupti& cupti, const CUpti_CallbackData& data, const CUstream stream,
                const bool per_thread, const bool may_query_stream, Operation& operation) {
  struct CachedStream {
    uint32_t context = 0;
    bool per_thread = false;
    CUstream stream = nullptr;
    uint64_t destroyed = ~uint64_t{0};
    uint32_t number = 0;  // CUPTI's
  };
  thread_local std::array<CachedStream, 32> cache;
  const uint64_t destroyed = destroyed_streams.load(std::memory_order_relaxed);
  const uint64_t handle = handle_value(stream);
  CachedStream& cached = cache[(handle >> 4 ^ handle >> 12) % cache.size()];
  if (cached.destroyed != destroyed || cached.stream != stream || cached.per_thread != per_thread ||
      cached.context != data.contextUid) {
    uint32_t number = 0;
    if (!may_query_stream ||
        cupti.stream_id(data.context, stream, per_thread ? 1 : 0, &number) != CUPTI_SUCCESS) {
      return false;
    }
    cached = {data.contextUid, per_thread, stream, destroyed, number};
    operation.is_new_stream = true;
  }
  operation.stream = cached.number;
  operation.is_null_stream = stream == CU_STREAM_LEGACY || (!per_thread && stream == nullptr);
  operation.handle = per_thread && stream == nullptr ? CU_STREAM_PER_THREAD : stream;
  return true;
}

}  // namespace

std::span<const std::byte> argument_buffer(void* const* extra) {
  const std::byte* bytes = nullptr;
  size_t size = 0;
  for (; extra != nullptr && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) bytes = static_cast<const std::byte*>(extra[1]);
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const size_t*>(extra[1]);
  }
  return bytes == nullptr ? std::span<const std::byte>() : std::span(bytes, size);
}

void set_attribute(Shape& shape, const CUlaunchAttributeID id,
                   const CUlaunchAttributeValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      shape.programmatic = value.programmaticStreamSerializationAllowed != 0;
      break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      shape.has_priority = true;
      shape.priority = value.priority;
      break;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      shape.cooperative = value.cooperative != 0;
      break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      shape.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      break;
    default:
      break;
  }
}

std::span<const CUpti_CallbackId> operation_callbacks(const Cupti& cupti) {
  static const auto& kept = *new std::vector<CUpti_CallbackId>([&] {
    std::vector<CUpti_CallbackId> ids;
    for (const auto& [id, row] : rows(cupti)) ids.push_back(id);
    std::ranges::sort(ids);
    return ids;
  }());
  return kept;
}

bool issues(const What what) {
  switch (what) {
    case What::kSynchronize:
    case What::kQuery:
    case What::kBeginCapture:
    case What::kEndCapture:
    case What::kOther:
      return false;
    default:
      return true;
  }
}

Operation operation_of(const Cupti& cupti, const CUpti_CallbackId id,
                       const CUpti_CallbackData& data, const bool may_query_stream) {
  Operation operation;
  operation.function = id;
  operation.call = data.correlationId;
  operation.context = data.contextUid;
  const CallbackRow* const row = row_of(cupti, id);
  if (row == nullptr) return operation;
  operation.what = row->what;
  const bool has_returned = data.callbackSite == CUPTI_API_EXIT;
  if (has_returned && issues(row->what) && row->what != What::kLaunch) return operation;
  CUstream stream = nullptr;
  row->read(operation, data.functionParams, stream);
  const bool names_stream = operation.has_stream && !(has_returned && issues(row->what));
  operation.has_stream =
      names_stream && set_stream(cupti, data, stream, row->per_thread, may_query_stream, operation);
  // A wait for a stream that is not known says nothing of the others.
  if (names_stream && !operation.has_stream && row->what == What::kSynchronize) {
    operation.what = What::kOther;
  }
  if (row->what == What::kLaunch) operation.shape.symbol = data.symbolName;
  return operation;
}

void forget_streams() { ++destroyed_streams; }

SetCarveout carveout_of(const CUpti_CallbackId id, const CUpti_CallbackData& data) {
  const auto taken = [](const CUfunction_attribute attribute, const int value,
                        const uint64_t function) -> SetCarveout {
    if (attribute != CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return {};
    return {function, value};
  };
  if (id == CUPTI_DRIVER_TRACE_CBID_cuFuncSetAttribute) {
    const auto& given = *static_cast<const cuFuncSetAttribute_params*>(data.functionParams);
    return taken(given.attrib, given.value, handle_value(given.hfunc));
  }
  if (id == CUPTI_DRIVER_TRACE_CBID_cuKernelSetAttribute) {
    const auto& given = *static_cast<const cuKernelSetAttribute_params*>(data.functionParams);
    return taken(given.attrib, given.val, handle_value(given.kernel));
  }
  return {};
}

}  // namespace tbsched::capture
