// A kernel lets the next one of its stream start early and waits for what that prefetches. The
// next one was launched without the attribute that allows it to start early.
#include "begin.cuh"

__global__ void first_layer(const volatile int* prefetched, float* x) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  if (threadIdx.x == 0)
    while (*prefetched == 0) __nanosleep(100);
  __syncthreads();
  x[threadIdx.x] += 1;
}

__global__ void second_layer(int* prefetched, const float* weights, float* x) {
  const float weight = weights[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(prefetched, 1);
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  x[threadIdx.x] *= weight;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* prefetched = zeros<int>(1);
  auto *x = zeros<float>(128), *weights = zeros<float>(128);
  load(first_layer);
  load(second_layer);
  const auto stream = stream_of_its_own();
  first_layer<<<4, 128, 0, stream>>>(prefetched, x);
  CHECK(cudaGetLastError());
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(4);
  config.blockDim = dim3(128);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = fixed ? 1 : 0;
  CHECK(
      cudaLaunchKernelEx(&config, second_layer, prefetched, static_cast<const float*>(weights), x));
  return finish();
}
