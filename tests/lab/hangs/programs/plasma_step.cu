// Particle-in-cell step: the field solver and the particle pusher each have a stream; the pusher
// polls the field version. A counter of lost particles is reset between the two launches.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "turn.cuh"
#define CK(x)                                                                    \
  do {                                                                           \
    cudaError_t e_ = (x);                                                        \
    if (e_ != cudaSuccess) {                                                     \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

constexpr int kCells = 1 << 14;
constexpr int kParts = 1 << 18;

__global__ void seed(float2 *p) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kParts; i += gridDim.x * blockDim.x)
    p[i] = make_float2((i * 7) % kCells, 0.1f * (i % 11));
}
__global__ void solveField(float *e, int *fieldVersion, int v) {
  for (int i = threadIdx.x; i < kCells; i += blockDim.x) e[i] = 0.01f * __sinf(0.001f * i * v);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(fieldVersion, v);
}
__global__ void pushParticles(float2 *p, const float *e, int *fieldVersion, int v, unsigned *lost) {
  if (threadIdx.x == 0)
    while (atomicAdd(fieldVersion, 0) < v) __nanosleep(500);
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kParts; i += gridDim.x * blockDim.x) {
    float2 q = p[i];
    q.y += ((volatile const float *)e)[(int)q.x & (kCells - 1)];
    q.x += q.y;
    if (q.x < 0 || q.x >= kCells) {
      atomicAdd(lost, 1);
      q.x = 0;
    }
    p[i] = q;
  }
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  float2 *p;
  float *e;
  int *ver;
  unsigned *lost;
  CK(cudaMalloc(&p, kParts * sizeof(float2)));
  CK(cudaMalloc(&e, kCells * 4));
  CK(cudaMalloc(&ver, 4));
  CK(cudaMalloc(&lost, 4));
  CK(cudaMemset(ver, 0, 4));
  CK(cudaMemset(lost, 0, 4));
  cudaStream_t sField, sPush;
  CK(cudaStreamCreate(&sField));
  CK(cudaStreamCreate(&sPush));
  seed<<<256, 256>>>(p);
  solveField<<<1, 512, 0, sField>>>(e, ver, 1);
  CK(cudaDeviceSynchronize());
  pushParticles<<<64, 256, 0, sPush>>>(p, e, ver, 1, lost);
  CK(cudaDeviceSynchronize());
  printf("initial half step done\n");
  for (int step = 2; step < 22; ++step) {
    if (fixed) CK(cudaMemsetAsync(lost, 0, 4, sPush));
    pushParticles<<<64, 256, 0, sPush>>>(p, e, ver, step, lost);
    if (!fixed) CK(cudaMemsetAsync(lost, 0, 4));
    solveField<<<1, 512, 0, sField>>>(e, ver, step);
    CK(cudaGetLastError());
    CK(cudaStreamSynchronize(sPush));
    if (step % 5 == 0) printf("step %d\n", step);
  }
  unsigned h;
  CK(cudaMemcpy(&h, lost, 4, cudaMemcpyDeviceToHost));
  printf("lost in the last step: %u\n", h);
  return 0;
}
