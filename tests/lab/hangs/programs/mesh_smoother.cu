// Mesh smoothing with on-demand refinement: the smoother stays on the GPU while cells are refined.
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

constexpr int kVerts = 1 << 16;

__global__ void smooth(float *v, int *refined, int want, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x + 1; i < n - 1; i += gridDim.x * blockDim.x)
    v[i] = 0.25f * (v[i - 1] + 2 * v[i] + v[i + 1]);
  if (threadIdx.x == 0)
    while (atomicAdd(refined, 0) < want) __nanosleep(1000);
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    v[i] *= 0.5f;
}

// keeps a per-thread edge stack of 4 KB
__global__ void refineCells(float *extra, int *refined, int n, int depth) {
  int stack[1024];
  int i = blockIdx.x * blockDim.x + threadIdx.x, top = 0;
  for (int k = 0; k < 1024; ++k) stack[k] = (i * 31 + k) % n;
  for (int d = 0; d < depth; ++d) {
    int e = stack[top & 1023];
    stack[(e + d) & 1023] = e ^ (d * 7);
    top = (top + e + 1) & 1023;
  }
  extra[i] = (float)stack[top];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(refined, 1);
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  float *v, *extra;
  int *refined;
  CK(cudaMalloc(&v, kVerts * 4));
  CK(cudaMalloc(&extra, 4096 * 4));
  CK(cudaMalloc(&refined, 4));
  CK(cudaMemset(v, 0, kVerts * 4));
  CK(cudaMemset(refined, 0, 4));
  cudaStream_t a, b;
  CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  for (int pass = 0; pass < 3; ++pass) smooth<<<8, 256, 0, a>>>(v, refined, 0, kVerts);
  if (fixed) {
    refineCells<<<8, 128, 0, b>>>(extra, refined, kVerts, 1);
  }
  CK(cudaDeviceSynchronize());
  CK(cudaMemset(refined, 0, 4));
  CK(cudaDeviceSynchronize());
  printf("coarse mesh smooth\n");
  for (int level = 1; level <= 4; ++level) {
    smooth<<<8, 256, 0, a>>>(v, refined, level * 8, kVerts);
    CK(cudaGetLastError());
    refineCells<<<8, 128, 0, b>>>(extra, refined, kVerts, 64 * level);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
    printf("level %d refined\n", level);
  }
  float h;
  CK(cudaMemcpy(&h, extra, 4, cudaMemcpyDeviceToHost));
  printf("extra[0] = %f\n", h);
  return 0;
}
