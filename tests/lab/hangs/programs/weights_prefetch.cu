// A layer lets the next one of its stream start early to prefetch weights, and then needs the
// routing from another stream. The prefetching blocks have taken the shared memory for that.
#include "begin.cuh"

constexpr int kLayer = 100 * 1024, kRoute = 40 * 1024;

__global__ void layer_one(const volatile int* routed, int routes, float* x) {
  extern __shared__ float tile[];
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  tile[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  if (threadIdx.x == 0)
    while (*routed < routes) __nanosleep(100);
  __syncthreads();
  x[blockIdx.x * blockDim.x + threadIdx.x] = tile[threadIdx.x] + 1;
}

__global__ void layer_two(const float* weights, float* x) {
  extern __shared__ float prefetched[];
  prefetched[threadIdx.x] = weights[threadIdx.x];
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  x[blockIdx.x * blockDim.x + threadIdx.x] *= prefetched[threadIdx.x];
}

__global__ void route(int* routed, int* table) {
  extern __shared__ int counts[];
  counts[threadIdx.x] = threadIdx.x % 8;
  table[blockIdx.x * blockDim.x + threadIdx.x] = counts[threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(routed, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *routed = zeros<int>(1), *table = zeros<int>(16 * 128);
  auto *x = zeros<float>(132 * 128), *weights = zeros<float>(128);
  allow(layer_one, kLayer);
  allow(layer_two, kLayer);
  allow(route, kRoute);
  const auto layers = stream_of_its_own(), routing = stream_of_its_own();
  layer_one<<<132, 128, kLayer, layers>>>(routed, 16, x);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(132);
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = kLayer;
  config.stream = layers;
  config.attrs = &early;
  config.numAttrs = fixed ? 0 : 1;
  CHECK(cudaLaunchKernelEx(&config, layer_two, static_cast<const float*>(weights), x));
  usleep(100000);  // the routing network is evaluated
  route<<<16, 128, kRoute, routing>>>(routed, table);
  CHECK(cudaGetLastError());
  return finish();
}
