// A kernel with a barrier over its grid, on the 16 SMs of a green context.
#include "begin.cuh"

constexpr int kShared = 120 * 1024;  // bytes: one block per SM

__global__ void exchange(float* values, int* arrived) {
  extern __shared__ float own[];
  own[threadIdx.x] = values[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*static_cast<volatile int*>(arrived) < static_cast<int>(gridDim.x)) {
    }
  }
  __syncthreads();
  values[blockIdx.x * 256 + threadIdx.x] = own[255 - threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* values = zeros<float>(32 * 256);
  auto* arrived = zeros<int>(1);
  allow(exchange, kShared);
  exchange<<<1, 256, kShared>>>(values, arrived);  // warm up
  CHECK(cudaMemset(arrived, 0, sizeof(int)));
  CHECK(cudaDeviceSynchronize());

  CUdevice device;
  CHECK(cuDeviceGet(&device, 0));
  CUdevResource all, part, rest;
  CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned groups = 1;
  CHECK(cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 16));
  std::printf("SMs: %u\n", part.sm.smCount);
  std::fflush(stdout);
  CUdevResourceDesc description;
  CHECK(cuDevResourceGenerateDesc(&description, &part, 1));
  CUgreenCtx green;
  CHECK(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  CUstream stream;
  CHECK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  exchange<<<fixed ? 16 : 32, 256, kShared, stream>>>(values, arrived);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamSynchronize(stream));
  return finish();
}
