// Prefill and decode get 64 SMs each. The decode kernel synchronises its grid, and counts a block
// for each SM of the whole GPU.
#include "begin.cuh"

__global__ void prefill(float* cache) { cache[blockIdx.x * 256 + threadIdx.x] = threadIdx.x; }

__global__ void __launch_bounds__(768) decode(const float* cache, int* arrived, float* logits) {
  const float value = cache[threadIdx.x % 256];
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*static_cast<volatile int*>(arrived) < static_cast<int>(gridDim.x)) __nanosleep(100);
  }
  __syncthreads();
  logits[blockIdx.x * 768 + threadIdx.x] = value * 2;
}

CUstream stream_on(CUdevResource* part, CUdevice device) {
  CUdevResourceDesc description;
  CHECK(cuDevResourceGenerateDesc(&description, part, 1));
  CUgreenCtx context;
  CHECK(cuGreenCtxCreate(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  CUstream stream;
  CHECK(cuGreenCtxStreamCreate(&stream, context, CU_STREAM_NON_BLOCKING, 0));
  return stream;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *cache = zeros<float>(64 * 256), *logits = zeros<float>(132 * 768);
  auto* arrived = zeros<int>(1);
  load(prefill);
  load(decode);
  CUdevice device;
  CHECK(cuDeviceGet(&device, 0));
  CUdevResource all, halves[2], rest;
  CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned groups = 2;
  CHECK(cuDevSmResourceSplitByCount(halves, &groups, &all, &rest, 0, 64));
  const auto first = stream_on(&halves[0], device), second = stream_on(&halves[1], device);
  const int sms = static_cast<int>(fixed ? halves[1].sm.smCount : all.sm.smCount);
  std::printf("%u groups, %d blocks on %u SMs\n", groups, sms, halves[1].sm.smCount);
  std::fflush(stdout);
  prefill<<<64, 256, 0, first>>>(cache);
  CHECK(cudaStreamSynchronize(first));
  decode<<<sms, 768, 0, second>>>(cache, arrived, logits);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamSynchronize(second));
  return finish();
}
