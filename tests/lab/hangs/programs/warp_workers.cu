// Ray tracing with workers of one warp each, as many as there can be. They wait for rays of a
// kernel that is launched when the workers run.
#include "begin.cuh"

__global__ void trace(int* rays, int* head, const volatile int* filled, float* image) {
  while (*filled == 0) __nanosleep(500);
  __threadfence();
  for (;;) {
    int at = 0;
    if (threadIdx.x == 0) at = atomicAdd(head, 1);
    at = __shfl_sync(0xffffffffu, at, 0);
    if (at >= 4096) return;
    image[at * 32 + threadIdx.x] = rays[at] * 0.5f;
  }
}

__global__ void emit_rays(int* rays, int* filled) {
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) rays[i] = i;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(filled, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *rays = zeros<int>(4096), *head = zeros<int>(1), *filled = zeros<int>(1);
  auto* image = zeros<float>(4096 * 32);
  load(trace);
  load(emit_rays);
  int least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t workers, camera;
  CHECK(cudaStreamCreateWithPriority(&workers, cudaStreamNonBlocking, least));
  CHECK(cudaStreamCreateWithPriority(&camera, cudaStreamNonBlocking, greatest));
  trace<<<132 * (fixed ? 24 : 32), 32, 0, workers>>>(rays, head, filled, image);
  CHECK(cudaGetLastError());
  usleep(50000);
  emit_rays<<<1, 32, 0, camera>>>(rays, filled);
  CHECK(cudaGetLastError());
  return finish();
}
