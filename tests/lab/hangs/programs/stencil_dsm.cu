// 1-D heat stencil: groups of four blocks exchange their borders through distributed shared memory,
// groups exchange with each other after a grid-wide step count.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "turn.cuh"
namespace cg = cooperative_groups;
#define CK(x)                                                                    \
  do {                                                                           \
    cudaError_t e_ = (x);                                                        \
    if (e_ != cudaSuccess) {                                                     \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

constexpr int kCells = 25 * 1024;      // floats per buffer, two buffers per block
constexpr int kSmem = 2 * kCells * 4;  // 200 KB

__global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(256)
    heatSteps(float *field, float *border, unsigned *steps, int nSteps) {
  extern __shared__ float buf[];
  cg::cluster_group cl = cg::this_cluster();
  float *cur = buf, *nxt = buf + kCells;
  size_t base = (size_t)blockIdx.x * kCells;
  for (int i = threadIdx.x; i < kCells; i += blockDim.x) cur[i] = field[base + i];
  cl.sync();
  for (int s = 0; s < nSteps; ++s) {
    unsigned r = cl.block_rank();
    float left = r > 0 ? cl.map_shared_rank(cur, r - 1)[kCells - 1]
                       : (blockIdx.x ? ((volatile float *)border)[blockIdx.x - 1] : 0.f);
    for (int i = threadIdx.x; i < kCells; i += blockDim.x) {
      float l = i ? cur[i - 1] : left, rr = i + 1 < kCells ? cur[i + 1] : cur[i];
      nxt[i] = cur[i] + 0.1f * (l - 2 * cur[i] + rr);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      ((volatile float *)border)[blockIdx.x] = nxt[kCells - 1];
      __threadfence();
      atomicAdd(&steps[s], 1);
      while (atomicAdd(&steps[s], 0) < gridDim.x) __nanosleep(400);
    }
    cl.sync();
    float *t = cur;
    cur = nxt;
    nxt = t;
  }
  for (int i = threadIdx.x; i < kCells; i += blockDim.x) field[base + i] = cur[i];
  cl.sync();
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  cudaDeviceProp p;
  CK(cudaGetDeviceProperties(&p, 0));
  const int maxBlocks = 132, nSteps = 50;
  float *field, *border;
  unsigned *steps;
  CK(cudaMalloc(&field, (size_t)maxBlocks * kCells * 4));
  CK(cudaMalloc(&border, maxBlocks * 4));
  CK(cudaMalloc(&steps, nSteps * 4));
  CK(cudaMemset(field, 0, (size_t)maxBlocks * kCells * 4));
  CK(cudaMemset(border, 0, maxBlocks * 4));
  CK(cudaFuncSetAttribute(heatSteps, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  int runs[2] = {16, fixed ? 96 : p.multiProcessorCount / 4 * 4};
  for (int blocks : runs) {
    CK(cudaMemset(steps, 0, nSteps * 4));
    printf("%d blocks, %d cells\n", blocks, blocks * kCells);
    heatSteps<<<blocks, 256, kSmem>>>(field, border, steps, nSteps);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
  }
  float v;
  CK(cudaMemcpy(&v, field, 4, cudaMemcpyDeviceToHost));
  printf("field[0] = %f\n", v);
  return 0;
}
