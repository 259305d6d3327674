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

struct Row {
  What what;
  bool per_thread;  // whether the default stream is the thread's own
  void (*take)(Operation&, const void* parameters, CUstream& stream);
};

// Takes what parameters of a call have. Those with `_ptsz` have the same fields as those without.
template <typename Parameters, uint64_t unit = 1>
void take(Operation& operation, const void* const parameters, CUstream& stream) {
  const auto& given = *static_cast<const Parameters*>(parameters);
  if constexpr (requires { given.hStream; }) stream = given.hStream;
  if constexpr (requires { given.stream; }) stream = given.stream;
  if constexpr (requires { given.hStream; } || requires { given.stream; }) {
    operation.has_stream = true;
  }
  if constexpr (requires { given.ByteCount; }) operation.bytes = given.ByteCount;
  if constexpr (requires { given.N; }) operation.bytes = given.N * unit;
  if constexpr (requires { given.hGraph; }) operation.executable = number(given.hGraph);
  if constexpr (requires { given.hEvent; }) operation.event = number(given.hEvent);
  if constexpr (requires { given.gridDimX; }) {
    Shape& shape = operation.shape;
    shape.grid = {given.gridDimX, given.gridDimY, given.gridDimZ};
    shape.block = {given.blockDimX, given.blockDimY, given.blockDimZ};
    shape.dynamic_shared_memory = given.sharedMemBytes;
    shape.function = number(given.f);
    shape.arguments = given.kernelParams;
    if constexpr (requires { given.extra; }) shape.buffer = buffer_of(given.extra);
  }
}

void take_nothing(Operation&, const void*, CUstream&) {}

// A copy or memset whose call waits for it: in the default stream.
template <typename Parameters, uint64_t unit = 1>
void take_in_default_stream(Operation& operation, const void* const parameters, CUstream& stream) {
  take<Parameters, unit>(operation, parameters, stream);
  operation.has_stream = true;
}

void take_cooperative(Operation& operation, const void* const parameters, CUstream& stream) {
  take<cuLaunchCooperativeKernel_params>(operation, parameters, stream);
  operation.shape.cooperative = true;
}

void take_launch(Operation& operation, const void* const parameters, CUstream& stream) {
  const auto& given = *static_cast<const cuLaunchKernelEx_params*>(parameters);
  const CUlaunchConfig& config = *given.config;
  Shape& shape = operation.shape;
  stream = config.hStream;
  operation.has_stream = true;
  shape.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
  shape.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
  shape.dynamic_shared_memory = config.sharedMemBytes;
  shape.function = number(given.f);
  shape.arguments = given.kernelParams;
  shape.buffer = buffer_of(given.extra);
  for (const CUlaunchAttribute& each : std::span(config.attrs, config.numAttrs)) {
    take_attribute(shape, each.id, each.value);
  }
}

using Rows = std::unordered_map<CUpti_CallbackId, Row>;

Rows all_rows(const Cupti& cupti) {
  Rows rows;
  // A function, and that for the default stream of each thread.
  const auto add = [&](const What what, const CUpti_CallbackId id, const CUpti_CallbackId own,
                       const auto taker) {
    rows[id] = {what, false, taker};
    if (own != CUPTI_DRIVER_TRACE_CBID_INVALID) rows[own] = {what, true, taker};
  };
  constexpr auto kNone = CUPTI_DRIVER_TRACE_CBID_INVALID;
  using enum What;
  add(kLaunch, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
      take<cuLaunchKernel_params>);
  add(kLaunch, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
      CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, take_launch);
  add(kLaunch, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
      CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz, take_cooperative);
  add(kGraph, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
      take<cuGraphLaunch_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync, CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz,
      take<cuMemcpyAsync_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz, take<cuMemcpyHtoDAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz, take<cuMemcpyDtoHAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz, take<cuMemcpyDtoDAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync_ptsz, take<cuMemcpyPeerAsync_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2_ptsz, take<cuMemcpy2DAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2,
      CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2_ptsz, take<cuMemcpy3DAsync_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2_ptds,
      take_in_default_stream<cuMemcpyHtoD_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2_ptds,
      take_in_default_stream<cuMemcpyDtoH_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2_ptds,
      take_in_default_stream<cuMemcpyDtoD_v2_params>);
  add(kCopy, CUPTI_DRIVER_TRACE_CBID_cuMemcpy, CUPTI_DRIVER_TRACE_CBID_cuMemcpy_ptds,
      take_in_default_stream<cuMemcpy_params>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
      CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz, take<cuMemsetD8Async_params>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async,
      CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz, take<cuMemsetD16Async_params, 2>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
      CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz, take<cuMemsetD32Async_params, 4>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2_ptds,
      take_in_default_stream<cuMemsetD8_v2_params>);
  add(kMemset, CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2, CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2_ptds,
      take_in_default_stream<cuMemsetD32_v2_params, 4>);
  add(kRecord, CUPTI_DRIVER_TRACE_CBID_cuEventRecord, CUPTI_DRIVER_TRACE_CBID_cuEventRecord_ptsz,
      take<cuEventRecord_params>);
  add(kRecord, CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags,
      CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags_ptsz, take<cuEventRecordWithFlags_params>);
  add(kWait, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz, take<cuStreamWaitEvent_params>);
  add(kWaitValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_ptsz, take<cuStreamWaitValue32_params>);
  add(kWaitValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_ptsz, take<cuStreamWaitValue64_params>);
  add(kWriteValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_ptsz, take<cuStreamWriteValue32_params>);
  add(kWriteValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue64,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue64_ptsz, take<cuStreamWriteValue64_params>);
  add(kWaitValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2_ptsz, take<cuStreamWaitValue32_v2_params>);
  add(kWaitValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_v2_ptsz, take<cuStreamWaitValue64_v2_params>);
  add(kWriteValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_v2_ptsz, take<cuStreamWriteValue32_v2_params>);
  add(kWriteValue, CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue64_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue64_v2_ptsz, take<cuStreamWriteValue64_v2_params>);
  add(kHostFunction, CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc,
      CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc_ptsz, take<cuLaunchHostFunc_params>);
  add(kSynchronize, CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
      CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz, take<cuStreamSynchronize_params>);
  add(kSynchronize, CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, kNone,
      take<cuEventSynchronize_params>);
  // They have versions, of which the headers may not know all.
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
    const std::string_view own = name;
    const auto begins = [&](const std::string_view each) { return own.starts_with(each); };
    if (begins("cuCtxSynchronize")) rows[id] = {kSynchronize, false, take_nothing};
    // One of those above issues something that is noted.
    if (std::ranges::any_of(kOthers, begins))
      rows.try_emplace(id, Row{kOther, false, take_nothing});
  }
  add(kQuery, CUPTI_DRIVER_TRACE_CBID_cuEventQuery, kNone, take<cuEventQuery_params>);
  add(kOther, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery_ptsz,
      take_nothing);  // so a thread that polls does not count as one that calls nothing
  for (const auto id : {CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz}) {
    rows[id] = {kBeginCapture, false, take_nothing};
  }
  for (const auto id : {CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,
                        CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz}) {
    rows[id] = {kEndCapture, false, take_nothing};
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
                        CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2}) {
    rows[id] = {kOther, false, take_nothing};
  }
  for (const auto id : graph_callbacks()) rows[id] = {kOther, false, take_nothing};
  return rows;
}

const Rows& rows(const Cupti& cupti) {
  static const auto& kept = *new Rows(all_rows(cupti));
  return kept;
}

// Indexed by the number of the function: it is looked up at each call of the program.
const Row* row_of(const Cupti& cupti, const CUpti_CallbackId id) {
  static const auto& kept = *new std::vector<std::optional<Row>>([&] {
    std::vector<std::optional<Row>> found;
    for (const auto& [each, row] : rows(cupti)) {
      if (found.size() <= each) found.resize(each + 1);
      found[each] = row;
    }
    return found;
  }());
  return id < kept.size() && kept[id] ? &*kept[id] : nullptr;
}

std::atomic<uint64_t> destroyed_streams = 0;

// Asking CUPTI for a stream's number takes longer than a launch may be delayed.
bool take_stream_number(const Cupti& cupti, const CUpti_CallbackData& data, const CUstream stream,
                        const bool per_thread, const bool asks, Operation& operation) {
  struct Known {
    uint32_t context = 0;
    bool per_thread = false;
    CUstream stream = nullptr;
    uint64_t destroyed = ~uint64_t{0};
    uint32_t found = 0;
  };
  thread_local std::array<Known, 32> kept;
  const uint64_t destroyed = destroyed_streams.load(std::memory_order_relaxed);
  const uint64_t handle = number(stream);
  Known& known = kept[(handle >> 4 ^ handle >> 12) % kept.size()];
  if (known.destroyed != destroyed || known.stream != stream || known.per_thread != per_thread ||
      known.context != data.contextUid) {
    uint32_t found = 0;
    if (!asks ||
        cupti.stream_id(data.context, stream, per_thread ? 1 : 0, &found) != CUPTI_SUCCESS) {
      return false;
    }
    known = {data.contextUid, per_thread, stream, destroyed, found};
    operation.is_new_stream = true;
  }
  operation.stream = known.found;
  operation.is_null_stream = stream == CU_STREAM_LEGACY || (!per_thread && stream == nullptr);
  operation.handle = per_thread && stream == nullptr ? CU_STREAM_PER_THREAD : stream;
  return true;
}

}  // namespace

std::span<const std::byte> buffer_of(void* const* extra) {
  const std::byte* bytes = nullptr;
  size_t size = 0;
  for (; extra != nullptr && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) bytes = static_cast<const std::byte*>(extra[1]);
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const size_t*>(extra[1]);
  }
  return bytes == nullptr ? std::span<const std::byte>() : std::span(bytes, size);
}

void take_attribute(Shape& shape, const CUlaunchAttributeID id,
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
                       const CUpti_CallbackData& data, const bool asks) {
  Operation operation;
  operation.function = id;
  operation.call = data.correlationId;
  operation.context = data.contextUid;
  const Row* const row = row_of(cupti, id);
  if (row == nullptr) return operation;
  operation.what = row->what;
  const bool has_returned = data.callbackSite == CUPTI_API_EXIT;
  if (has_returned && issues(row->what) && row->what != What::kLaunch) return operation;
  CUstream stream = nullptr;
  row->take(operation, data.functionParams, stream);
  const bool names_stream = operation.has_stream && !(has_returned && issues(row->what));
  operation.has_stream =
      names_stream && take_stream_number(cupti, data, stream, row->per_thread, asks, operation);
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
    return taken(given.attrib, given.value, number(given.hfunc));
  }
  if (id == CUPTI_DRIVER_TRACE_CBID_cuKernelSetAttribute) {
    const auto& given = *static_cast<const cuKernelSetAttribute_params*>(data.functionParams);
    return taken(given.attrib, given.val, number(given.kernel));
  }
  return {};
}

}  // namespace tbsched::capture
