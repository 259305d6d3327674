// Molecular dynamics of a small cluster: many short steps in one stream, one wait at the end.
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

constexpr int kAtoms = 2048;

__global__ void placeAtoms(float4 *x, float4 *v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = make_float4(i % 16, (i / 16) % 16, i / 256, 0);
  v[i] = make_float4(0, 0, 0, 0);
}
__global__ void forces(const float4 *x, float4 *f, int sub) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 a = make_float4(0, 0, 0, 0), p = x[i];
  for (int s = 0; s < sub; ++s)
    for (int j = 0; j < kAtoms; ++j) {
      float4 q = x[j];
      float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
      float w = rsqrtf(dx * dx + dy * dy + dz * dz + 0.5f + 0.001f * s);
      w = w * w * w;
      a.x += dx * w;
      a.y += dy * w;
      a.z += dz * w;
    }
  f[i] = a;
}
__global__ void integrate(float4 *x, float4 *v, const float4 *f, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  v[i].x += dt * f[i].x;
  v[i].y += dt * f[i].y;
  v[i].z += dt * f[i].z;
  x[i].x += dt * v[i].x;
  x[i].y += dt * v[i].y;
  x[i].z += dt * v[i].z;
}

static void steps(int n, float4 *x, float4 *v, float4 *f, cudaStream_t s) {
  for (int k = 0; k < n; ++k) {
    forces<<<kAtoms / 64, 64, 0, s>>>(x, f, 20);
    integrate<<<kAtoms / 64, 64, 0, s>>>(x, v, f, 1e-5f);
  }
  CK(cudaGetLastError());
}

int main() {
  take_turn();
  setvbuf(stdout, nullptr, _IOLBF, 0);
  float4 *x, *v, *f;
  CK(cudaMalloc(&x, kAtoms * 16));
  CK(cudaMalloc(&v, kAtoms * 16));
  CK(cudaMalloc(&f, kAtoms * 16));
  cudaStream_t s;
  cudaEvent_t a, b;
  float ms;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  placeAtoms<<<kAtoms / 64, 64, 0, s>>>(x, v);
  steps(20, x, v, f, s);
  CK(cudaEventRecord(a, s));
  steps(100, x, v, f, s);
  CK(cudaEventRecord(b, s));
  CK(cudaStreamSynchronize(s));
  CK(cudaEventElapsedTime(&ms, a, b));
  int n = (int)(100 * 23000.0f / ms);
  printf("%.3f ms a step, running %d steps\n", ms / 100, n);
  steps(n, x, v, f, s);
  CK(cudaStreamSynchronize(s));
  float4 h;
  CK(cudaMemcpy(&h, x, 16, cudaMemcpyDeviceToHost));
  printf("atom 0 at %f %f %f\n", h.x, h.y, h.z);
  return 0;
}
