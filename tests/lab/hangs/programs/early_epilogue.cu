// Programmatic dependent launch: an epilogue may start its prologue while the product before it
// runs. The product waits for scales that a small kernel of another stream computes.
#include "begin.cuh"

constexpr int kThreads = 256;

__global__ void product(const volatile int* scaled, float* tiles) {
  extern __shared__ float stage[];
  cudaTriggerProgrammaticLaunchCompletion();
  stage[threadIdx.x] = tiles[threadIdx.x];
  if (threadIdx.x == 0)
    while (*scaled < 4) __nanosleep(200);
  __syncthreads();
  tiles[blockIdx.x * kThreads + threadIdx.x] = stage[threadIdx.x ^ 1];
}

__global__ void epilogue(const float* bias, const float* tiles, float* out) {
  extern __shared__ float stage[];
  stage[threadIdx.x] = bias[threadIdx.x];
  cudaGridDependencySynchronize();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = tiles[i] + stage[threadIdx.x];
}

__global__ void scales(int* scaled, float* amax) {
  extern __shared__ float stage[];
  stage[threadIdx.x] = amax[threadIdx.x];
  __syncthreads();
  amax[blockIdx.x * kThreads + threadIdx.x] = stage[threadIdx.x ^ 2];
  if (threadIdx.x == 0) atomicAdd(scaled, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* scaled = zeros<int>(1);
  auto *tiles = zeros<float>(132 * kThreads), *out = zeros<float>(132 * kThreads);
  auto *bias = zeros<float>(kThreads), *amax = zeros<float>(4 * kThreads);
  allow(product, 115 << 10);
  allow(epilogue, 100 << 10);
  allow(scales, 40 << 10);
  for (const void* each : {(const void*)product, (const void*)epilogue, (const void*)scales})
    CHECK(cudaFuncSetAttribute(each, cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared));
  const auto stream = stream_of_its_own(), side = stream_of_its_own();
  product<<<132, kThreads, 115 << 10, stream>>>(scaled, tiles);
  CHECK(cudaGetLastError());
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(132), config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = 100 << 10, config.stream = stream;
  config.attrs = &attribute, config.numAttrs = fixed ? 0 : 1;
  CHECK(cudaLaunchKernelEx(&config, epilogue, (const float*)bias, (const float*)tiles, out));
  usleep(300000);  // the amax of the last step arrives
  scales<<<4, kThreads, 40 << 10, side>>>(scaled, amax);
  CHECK(cudaGetLastError());
  return finish();
}
