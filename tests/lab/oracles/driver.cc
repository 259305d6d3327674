// The driver's answers, and the toolkit's cuda_occupancy.h, for kernels that a script describes.
// Every function returns a CUresult, or a cudaOccError plus 10000.
#include <cuda.h>
#include <cuda_occupancy.h>

#include <array>

namespace {

constexpr int kHeaderError = 10000;
cudaOccDeviceProp properties;

int attribute(const CUdevice_attribute which) {
  int value = 0;
  cuDeviceGetAttribute(&value, which, 0);
  return value;
}

struct Config {
  Config(const int blocks, const int threads, const size_t shared, const int cluster,
         const CUstream stream) {
    config.gridDimX = static_cast<unsigned>(blocks);
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = static_cast<unsigned>(threads);
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = static_cast<unsigned>(shared);
    config.hStream = stream;
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    config.attrs = attributes.data();
    config.numAttrs = cluster > 1 ? 1 : 0;
  }
  std::array<CUlaunchAttribute, 1> attributes{};
  CUlaunchConfig config{};
};

}  // namespace

extern "C" {

int oracle_open() {
  CUcontext context = nullptr;
  if (const CUresult result = cuInit(0); result != CUDA_SUCCESS) return result;
  if (const CUresult result = cuDevicePrimaryCtxRetain(&context, 0); result != CUDA_SUCCESS) {
    return result;
  }
  properties.computeMajor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  properties.computeMinor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  properties.maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  properties.maxThreadsPerMultiprocessor =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  properties.regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties.regsPerMultiprocessor =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  properties.warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties.sharedMemPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties.sharedMemPerMultiprocessor =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  properties.numSms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  properties.sharedMemPerBlockOptin =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  properties.reservedSharedMemPerBlock =
      attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  return cuCtxSetCurrent(context);
}

int oracle_load(const void* const cubin, const char* const name, CUfunction* const function) {
  CUmodule module = nullptr;
  const CUresult result = cuModuleLoadData(&module, cubin);
  if (result != CUDA_SUCCESS) return result;
  return cuModuleGetFunction(function, module, name);
}

// Before its launches and queries: the most dynamic shared memory, and the carveout.
int oracle_prepare(const CUfunction function, const int shared, const int carveout) {
  const CUresult result =
      cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared);
  if (result != CUDA_SUCCESS) return result;
  cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  return cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveout);
}

int oracle_blocks(const CUfunction function, const int threads, const size_t shared,
                  int* const blocks) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

int oracle_clusters(const CUfunction function, const int blocks, const int threads,
                    const size_t shared, const int cluster, int* const clusters) {
  const Config config(blocks, threads, shared, cluster, nullptr);
  return cuOccupancyMaxActiveClusters(clusters, function, &config.config);
}

int oracle_header_blocks(const int registers, const int threads, const size_t shared,
                         const int carveout, int* const blocks) {
  cudaOccFuncAttributes function;
  function.maxThreadsPerBlock = properties.maxThreadsPerBlock;
  function.numRegs = registers;
  function.sharedSizeBytes = 0;
  function.partitionedGCConfig = PARTITIONED_GC_OFF;
  function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  function.maxDynamicSharedSizeBytes = shared;
  function.numBlockBarriers = 1;
  cudaOccDeviceState state;
  state.cacheConfig = CACHE_PREFER_NONE;
  state.carveoutConfig = carveout;
  cudaOccResult result;
  const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
      &result, &properties, &function, &state, threads, shared);
  *blocks = result.activeBlocksPerMultiprocessor;
  return error == CUDA_OCC_SUCCESS ? 0 : kHeaderError + error;
}

int oracle_stream(const int priority, CUstream* const stream) {
  return cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, priority);
}

int oracle_launch(const CUfunction function, const int blocks, const int threads,
                  const size_t shared, const int cluster, const CUstream stream,
                  unsigned long long nanoseconds) {
  const Config config(blocks, threads, shared, cluster, stream);
  std::array<void*, 1> arguments = {&nanoseconds};
  return cuLaunchKernelEx(&config.config, function, arguments.data(), nullptr);
}

int oracle_event(CUevent* const event) { return cuEventCreate(event, CU_EVENT_DISABLE_TIMING); }
int oracle_record(const CUevent event, const CUstream stream) {
  return cuEventRecord(event, stream);
}
int oracle_wait(const CUstream stream, const CUevent event) {
  return cuStreamWaitEvent(stream, event, 0);
}
int oracle_synchronize() { return cuCtxSynchronize(); }
int oracle_synchronize_stream(const CUstream stream) { return cuStreamSynchronize(stream); }
}
