// A stand-in for libcuda.so.1 and libnvidia-ml.so.1, to rehearse the launcher without a GPU.
//
// fake_set(key, value) makes the GPU that it emulates misbehave, and so do the FAKE_ variables of
// the environment.
#include <cuda.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "accounts.h"
#include "calls.h"
#include "fake_gpu.h"

namespace {

using fake::Accounts;
using fake::entered;
using fake::FakeEvent;
using fake::FakeGpu;
using fake::FakeStream;
using fake::kBlocksPerSm;
using fake::kRegistersPerSm;
using fake::kSharedPerBlock;
using fake::kSharedPerSm;
using fake::kWarpsPerSm;
using fake::take_back;

}  // namespace

extern "C" {

void fake_set(const char* key, int64_t value) { FakeGpu::get().set(key, value); }
void fake_set_of(int64_t device, const char* key, int64_t value) {
  FakeGpu::of(static_cast<CUdevice>(device)).set(key, value);
}
int64_t fake_get_of(int64_t device, const char* key) {
  return FakeGpu::of(static_cast<CUdevice>(device)).setting(key);
}
int64_t fake_get(const char* key) { return FakeGpu::get().setting(key); }
int64_t fake_live(const char* kind) { return Accounts::get().live(kind); }
int64_t fake_calls(const char* call) { return Accounts::get().calls(call); }
void fake_interrupt(const char* call, int64_t at) { Accounts::get().interrupt(call, at); }
void fake_fail(const char* call, int64_t at, int64_t code, int64_t for_good) {
  Accounts::get().fail(call, at, static_cast<CUresult>(code), for_good != 0);
}
const char* fake_failed() {
  static std::string name;
  name = Accounts::get().failed();
  return name.c_str();
}

CUresult cuInit(unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  return std::getenv("FAKE_NO_DEVICE") != nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS               ? "CUDA_SUCCESS"
          : error == CUDA_ERROR_NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
          : error == CUDA_ERROR_NOT_READY     ? "CUDA_ERROR_NOT_READY"
          : error == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
          : error == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
              ? "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"
              : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "made up by the fake driver";
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const char* const gpus = std::getenv("FAKE_GPUS");
  *count = gpus != nullptr ? std::atoi(gpus) : 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *device = index;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  std::strncpy(name, "Fake GPU", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  std::memset(uuid->bytes, 0x5a, sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  std::strncpy(text, "0000:01:00.0", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const char* const architecture = std::getenv("FAKE_ARCHITECTURE");
  const int number = architecture != nullptr ? std::atoi(architecture) : 90;
  const std::map<CUdevice_attribute, int> values = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, number / 10},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, number % 10},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, kRegistersPerSm},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kSharedPerBlock},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, kBlocksPerSm},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 32 * kWarpsPerSm},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, kRegistersPerSm},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, kSharedPerSm},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, number >= 80 ? 1024 : 0},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
      {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, number >= 90 ? 1 : 0},
  };
  const auto found = values.find(which);
  if (found == values.end()) return CUDA_ERROR_INVALID_VALUE;
  *value = found->second;
  return CUDA_SUCCESS;
}
CUresult cuLinkCreate_v2(unsigned, CUjit_option*, void**, CUlinkState* state) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *state = reinterpret_cast<CUlinkState>(std::make_unique<std::string>().release());
  Accounts::get().give("links", *state);
  return CUDA_SUCCESS;
}
CUresult cuLinkAddData_v2(CUlinkState, CUjitInputType type, void* data, size_t size, const char*,
                          unsigned, CUjit_option*, void**) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const auto* const text = static_cast<const char*>(data);
  const bool terminated = size > 0 && text[size - 1] == '\0';
  return type == CU_JIT_INPUT_PTX && terminated ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
// "Compiles" to the cubin in the file that FAKE_JIT_CUBIN names.
CUresult cuLinkComplete(CUlinkState state, void** cubin, size_t* size) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const char* const path = std::getenv("FAKE_JIT_CUBIN");
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto& text = *reinterpret_cast<std::string*>(state);
  std::ifstream file(path, std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), {});
  *cubin = text.data();
  *size = text.size();
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(CUlinkState state) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const std::unique_ptr<std::string> owned(reinterpret_cast<std::string*>(state));
  return take_back("links", state, false);
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  auto fake = std::make_unique<FakeStream>();
  fake->priority = priority;
  fake->blocking = flags == CU_STREAM_DEFAULT;
  FakeGpu::get().count("streams");
  *stream = reinterpret_cast<CUstream>(fake.release());
  Accounts::get().give("streams", *stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const std::unique_ptr<FakeStream> owned(reinterpret_cast<FakeStream*>(stream));
  FakeGpu::get().count("streams_destroyed");
  return take_back("streams", stream, true);
}
CUresult cuStreamQuery(CUstream stream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  return FakeGpu::get().busy(stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().count("synchronized");
  FakeGpu::get().synchronize(stream);
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent event) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().synchronize(*reinterpret_cast<const FakeEvent*>(event));
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().wait(stream, *reinterpret_cast<const FakeEvent*>(event));
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *event = reinterpret_cast<CUevent>(std::make_unique<FakeEvent>().release());
  FakeGpu::get().count("events");
  Accounts::get().give("events", *event);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().record(*reinterpret_cast<FakeEvent*>(event), stream);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const std::unique_ptr<FakeEvent> owned(reinterpret_cast<FakeEvent*>(event));
  FakeGpu::get().count("events_destroyed");
  return take_back("events", event, true);
}
CUresult cuMemAlloc_v2(CUdeviceptr* device, size_t size) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().count("device_allocations");
  void* memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  std::memset(memory, 0x5a, size);  // nobody zeroes it
  *device = reinterpret_cast<CUdeviceptr>(memory);
  Accounts::get().give("device memory", memory);
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr device) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  auto* const memory = reinterpret_cast<void*>(device);
  if (const CUresult error = take_back("device memory", memory, true); error != CUDA_SUCCESS) {
    return error;
  }
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr device, const void* host, size_t size) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  std::memcpy(reinterpret_cast<void*>(device), host, size);
  return CUDA_SUCCESS;
}
// These take no time on the GPU, once all before them in the stream is over.
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr device, const void* host, size_t size, CUstream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().count("h2d");
  std::memcpy(reinterpret_cast<void*>(device), host, size);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void* host, CUdeviceptr device, size_t size, CUstream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().count("d2h");
  std::memcpy(host, reinterpret_cast<const void*>(device), size);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().count("d2d");
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr device, unsigned char value, size_t size, CUstream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().count("memsets");
  std::memset(reinterpret_cast<void*>(device), value, size);
  return CUDA_SUCCESS;
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr place, cuuint64_t value, unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  auto* const memory = reinterpret_cast<int64_t*>(place);
  FakeGpu::get().add({.place = memory, .value = static_cast<int64_t>(value), .waits = false},
                     stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr place, cuuint64_t value, unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  auto* const memory = reinterpret_cast<int64_t*>(place);
  FakeGpu::get().add({.place = memory, .value = static_cast<int64_t>(value), .waits = true},
                     stream);
  return CUDA_SUCCESS;
}
CUresult cuLaunchHostFunc(CUstream, CUhostFn function, void* argument) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().count("host_functions");
  function(argument);
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** memory, size_t size, unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeGpu::get().count("host_allocations");
  *memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  Accounts::get().give("host memory", *memory);
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (const CUresult error = take_back("host memory", memory, true); error != CUDA_SUCCESS) {
    return error;
  }
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* memory, unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *device = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "999.88.07", size);
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = &FakeGpu::of(0);
  return 0;
}
int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = std::getenv("FAKE_MIG") != nullptr ? 1 : 0;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  const char* const others = std::getenv("FAKE_PROCESSES");
  *count = others != nullptr ? static_cast<unsigned>(std::atoi(others)) : 0;
  return *count != 0 ? 7 : 0;
}

}  // extern "C"
