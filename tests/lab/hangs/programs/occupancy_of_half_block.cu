// Shallow water in one kernel. The grid is as large as fits for blocks of 256 threads, and the
// blocks have since been doubled.
#include "begin.cuh"

struct Barrier {
  unsigned arrived;
  unsigned generation;
};

__device__ void meet(Barrier* barrier) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned mine = atomicAdd(&barrier->generation, 0);
    __threadfence();
    if (atomicAdd(&barrier->arrived, 1) == gridDim.x - 1) {
      barrier->arrived = 0;
      __threadfence();
      atomicAdd(&barrier->generation, 1);
    } else {
      while (atomicAdd(&barrier->generation, 0) == mine) __nanosleep(100);
    }
  }
  __syncthreads();
}

__global__ void advect(float* height, float* next, int n, Barrier* barrier) {
  for (int step = 0; step < 20; ++step) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) next[i] = 0.5f * (height[i] + height[i > 0 ? i - 1 : n - 1]);
    meet(barrier);
    float* swap = height;
    height = next;
    next = swap;
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int asked = 256, launched = fixed ? 256 : 512;
  int per_sm, sms;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, advect, asked, 0));
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int n = per_sm * sms * launched;
  float *height = zeros<float>(n), *next = zeros<float>(n);
  auto* barrier = zeros<Barrier>(1);
  advect<<<per_sm * sms, launched>>>(height, next, n, barrier);
  CHECK(cudaGetLastError());
  return finish();
}
