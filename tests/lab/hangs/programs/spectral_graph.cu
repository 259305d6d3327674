// A spectral step as a CUDA graph with explicit nodes: window, rotate factors, butterfly, power.
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

constexpr int kN = 1 << 14;

__global__ void window(float *x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = 0.5f - 0.5f * __cosf(6.2831853f * i / n);
}
__global__ void rotateFactors(float2 *w, int *factorsReady, int step, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    w[i] = make_float2(__cosf(i * 0.1f), __sinf(i * 0.1f));
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(factorsReady, 1);
}
// starts on the real part and picks the factors up as soon as they are there
__global__ void butterfly(const float *x, const float2 *w, float2 *y, int *factorsReady, int *taken,
                          int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i].x = x[i];
  __shared__ int want;
  if (threadIdx.x == 0) {
    want = atomicAdd(taken, 1) + 1;
    while (atomicAdd(factorsReady, 0) < want) __nanosleep(500);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float2 f = ((const float2 *)w)[i];
    y[i] = make_float2(y[i].x * f.x, y[i].x * f.y);
  }
}
__global__ void power(const float2 *y, float *p, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(p, y[i].x * y[i].x + y[i].y * y[i].y);
}

static cudaGraphNode_t kernelNode(cudaGraph_t g, const cudaGraphNode_t *deps, size_t nd, void *fn,
                                  void **args) {
  cudaKernelNodeParams kp = {};
  kp.func = fn;
  kp.gridDim = dim3(1);
  kp.blockDim = dim3(256);
  kp.kernelParams = args;
  cudaGraphNode_t node;
  CK(cudaGraphAddKernelNode(&node, g, deps, nd, &kp));
  return node;
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  float *x, *p;
  float2 *w, *y;
  int *ready, *taken;
  CK(cudaMalloc(&x, kN * 4));
  CK(cudaMalloc(&p, 4));
  CK(cudaMalloc(&w, kN * 8));
  CK(cudaMalloc(&y, kN * 8));
  CK(cudaMalloc(&ready, 4));
  CK(cudaMalloc(&taken, 4));
  CK(cudaMemset(ready, 0, 4));
  CK(cudaMemset(taken, 0, 4));
  CK(cudaMemset(p, 0, 4));
  int n = kN, step = 0;
  cudaStream_t s;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  // once without a graph
  window<<<1, 256, 0, s>>>(x, n);
  rotateFactors<<<1, 256, 0, s>>>(w, ready, step, n);
  butterfly<<<1, 256, 0, s>>>(x, w, y, ready, taken, n);
  power<<<1, 256, 0, s>>>(y, p, n);
  CK(cudaStreamSynchronize(s));
  printf("eager step done\n");

  cudaGraph_t g;
  CK(cudaGraphCreate(&g, 0));
  void *aw[] = {&x, &n}, *ar[] = {&w, &ready, &step, &n}, *ab[] = {&x, &w, &y, &ready, &taken, &n},
       *ap[] = {&y, &p, &n};
  cudaGraphNode_t nWin = kernelNode(g, nullptr, 0, (void *)window, aw);
  if (fixed) {
    cudaGraphNode_t nRot = kernelNode(g, nullptr, 0, (void *)rotateFactors, ar);
    cudaGraphNode_t deps[2] = {nWin, nRot};
    cudaGraphNode_t nBut = kernelNode(g, deps, 2, (void *)butterfly, ab);
    kernelNode(g, &nBut, 1, (void *)power, ap);
  } else {
    cudaGraphNode_t nBut = kernelNode(g, &nWin, 1, (void *)butterfly, ab);
    cudaGraphNode_t nPow = kernelNode(g, &nBut, 1, (void *)power, ap);
    // the factors of the coming step overwrite w, so they go after the last reader
    kernelNode(g, &nPow, 1, (void *)rotateFactors, ar);
  }
  cudaGraphExec_t ge;
  CK(cudaGraphInstantiate(&ge, g, 0));
  for (int i = 0; i < 8; ++i) {
    CK(cudaGraphLaunch(ge, s));
    CK(cudaStreamSynchronize(s));
    printf("graph step %d done\n", i);
  }
  float h;
  CK(cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost));
  printf("power %f\n", h);
  return 0;
}
