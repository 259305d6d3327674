// Couples a GPU ocean model with a CPU atmosphere: the ocean stream waits for the flux word, the
// CPU computes fluxes from the sea-surface temperature.
#include <cuda.h>
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
#define CU(x)                                                \
  do {                                                       \
    CUresult r_ = (x);                                       \
    if (r_ != CUDA_SUCCESS) {                                \
      const char *m_ = "?";                                  \
      cuGetErrorString(r_, &m_);                             \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, m_); \
      exit(1);                                               \
    }                                                        \
  } while (0)

constexpr int kCells = 1 << 15;

__global__ void oceanStep(float *sst, const float *flux) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCells) sst[i] += 0.1f * flux[0];
}
__global__ void surfaceMean(const float *sst, float *mean) {
  __shared__ float s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  float v = 0;
  for (int i = threadIdx.x; i < kCells; i += blockDim.x) v += sst[i];
  atomicAdd(&s, v);
  __syncthreads();
  if (threadIdx.x == 0) *mean = s / kCells;
}

struct Coupler {
  cudaStream_t ocean;
  float *sst, *flux, *mean, *hMean;
  unsigned *fluxWord;
  float atmosphere(int step) {  // needs the mean of the finished step
    CK(cudaMemcpyAsync(hMean, mean, 4, cudaMemcpyDeviceToHost, ocean));
    CK(cudaStreamSynchronize(ocean));
    return 0.5f * (15.f - *hMean) + 0.01f * step;
  }
  void enqueue(int step) {
    CU(cuStreamWaitValue32((CUstream)ocean, (CUdeviceptr)fluxWord, step, CU_STREAM_WAIT_VALUE_GEQ));
    oceanStep<<<kCells / 256, 256, 0, ocean>>>(sst, flux);
    surfaceMean<<<1, 512, 0, ocean>>>(sst, mean);
    CK(cudaGetLastError());
  }
};

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Coupler c;
  CK(cudaMalloc(&c.sst, kCells * 4));
  CK(cudaMalloc(&c.mean, 4));
  CK(cudaHostAlloc(&c.flux, 4, cudaHostAllocMapped));
  CK(cudaHostAlloc(&c.fluxWord, 4, cudaHostAllocMapped));
  CK(cudaMallocHost(&c.hMean, 4));
  CK(cudaMemset(c.sst, 0, kCells * 4));
  CK(cudaStreamCreateWithFlags(&c.ocean, cudaStreamNonBlocking));
  *c.flux = 1.f;
  *c.fluxWord = 1;
  c.enqueue(1);
  CK(cudaStreamSynchronize(c.ocean));
  printf("spin-up step done\n");
  for (int step = 2; step <= 20; ++step) {
    if (!fixed) c.enqueue(step);  // keep the ocean busy
    float f = c.atmosphere(step);
    *(volatile float *)c.flux = f;
    __sync_synchronize();
    *(volatile unsigned *)c.fluxWord = step;
    if (fixed) c.enqueue(step);
    printf("step %d: flux %.4f\n", step, f);
  }
  CK(cudaStreamSynchronize(c.ocean));
  printf("mean sst %.4f\n", *c.hMean);
  return 0;
}
