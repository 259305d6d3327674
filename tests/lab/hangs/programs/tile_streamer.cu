// Map tiles are streamed to a resident renderer; decode scratch of a tile is released as soon as it
// has been copied.
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

constexpr int kTile = 1 << 22;

struct Mailbox {
  int posted;
  int finished;
};

__global__ void renderer(const float *slot, volatile Mailbox *mb, float *image, int tiles) {
  for (int t = 1; t <= tiles; ++t) {
    if (threadIdx.x == 0)
      while (mb->posted < t) __nanosleep(2000);
    __syncthreads();
    for (int i = threadIdx.x; i < 65536; i += blockDim.x)
      image[i] += ((volatile const float *)slot)[i * 16];
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) mb->finished = t;
  }
}
__global__ void decodeTile(float *scratch, int t) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kTile; i += gridDim.x * blockDim.x)
    scratch[i] = (i ^ t) & 255;
}
__global__ void copyTile(const float *scratch, float *slot) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kTile; i += gridDim.x * blockDim.x)
    slot[i] = scratch[i];
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int tiles = 6;
  float *slot, *image, *scratch[tiles + 1];
  Mailbox *mb;
  CK(cudaMalloc(&slot, kTile * 4));
  CK(cudaMalloc(&image, 65536 * 4));
  CK(cudaHostAlloc(&mb, sizeof *mb, cudaHostAllocMapped));
  mb->posted = mb->finished = 0;
  CK(cudaMemset(image, 0, 65536 * 4));
  for (int t = 0; t <= tiles; ++t) CK(cudaMalloc(&scratch[t], (size_t)kTile * 16));
  cudaStream_t render, load;
  CK(cudaStreamCreateWithFlags(&render, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&load, cudaStreamNonBlocking));
  decodeTile<<<64, 256, 0, load>>>(scratch[0], 0);
  copyTile<<<64, 256, 0, load>>>(scratch[0], slot);
  renderer<<<1, 256, 0, render>>>(slot, mb, image, 0);
  CK(cudaDeviceSynchronize());
  printf("background tile in place\n");
  renderer<<<1, 256, 0, render>>>(slot, mb, image, tiles);
  CK(cudaGetLastError());
  for (int t = 1; t <= tiles; ++t) {
    while (((volatile Mailbox *)mb)->finished < t - 1) {
    }
    decodeTile<<<64, 256, 0, load>>>(scratch[t], t);
    copyTile<<<64, 256, 0, load>>>(scratch[t], slot);
    CK(cudaStreamSynchronize(load));
    if (!fixed) CK(cudaFree(scratch[t]));
    ((volatile Mailbox *)mb)->posted = t;
    printf("tile %d posted\n", t);
  }
  CK(cudaStreamSynchronize(render));
  if (fixed)
    for (int t = 1; t <= tiles; ++t) CK(cudaFree(scratch[t]));
  printf("image complete\n");
  return 0;
}
