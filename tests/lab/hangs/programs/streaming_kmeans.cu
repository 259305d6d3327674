// Streaming k-means: an assignment kernel stays resident; the host tunes and runs the centroid
// update, then hands over the next chunk through a mapped word.
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

constexpr int kDim = 16, kK = 32, kChunk = 8192;

__global__ void assignResident(const float *pts, const float *cent, int *label,
                               volatile int *chunkWord, int *assigned, int chunks) {
  for (int c = 1; c <= chunks; ++c) {
    if (threadIdx.x == 0)
      while (*chunkWord < c) __nanosleep(2000);
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kChunk; i += gridDim.x * blockDim.x) {
      float best = 1e30f;
      int arg = 0;
      for (int k = 0; k < kK; ++k) {
        float d = 0;
        for (int j = 0; j < kDim; ++j) {
          float t = pts[i * kDim + j] - ((volatile const float *)cent)[k * kDim + j];
          d += t * t;
        }
        if (d < best) {
          best = d;
          arg = k;
        }
      }
      label[i] = arg;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(assigned, 1);
  }
}
__global__ void fillPoints(float *p, int n, float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = scale * ((i * 2654435761u >> 20) & 255);
}
__global__ void updateCentroids(float *cent, const float *pts, const int *label, int *count) {
  int k = blockIdx.x;
  __shared__ int cnt;
  if (threadIdx.x == 0) cnt = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < kChunk; i += blockDim.x)
    if (label[i] == k) {
      atomicAdd(&cnt, 1);
      atomicAdd(&cent[k * kDim + i % kDim], 0.01f * pts[i * kDim + i % kDim]);
    }
  __syncthreads();
  if (threadIdx.x == 0) count[k] = cnt;
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  float *pts, *cent;
  int *label, *assigned, *count, *word;
  CK(cudaMalloc(&pts, kChunk * kDim * 4));
  CK(cudaMalloc(&cent, kK * kDim * 4));
  CK(cudaMalloc(&label, kChunk * 4));
  CK(cudaMalloc(&assigned, 4));
  CK(cudaMalloc(&count, kK * 4));
  CK(cudaHostAlloc(&word, 4, cudaHostAllocMapped));
  *word = 0;
  fillPoints<<<kChunk * kDim / 256, 256>>>(pts, kChunk * kDim, 0.01f);
  fillPoints<<<2, 256>>>(cent, kK * kDim, 0.02f);
  CK(cudaMemset(label, 0, kChunk * 4));
  CK(cudaMemset(assigned, 0, 4));
  cudaStream_t sa, su;
  CK(cudaStreamCreateWithFlags(&sa, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&su, cudaStreamNonBlocking));
  int minGrid = 0, threads = 256;
  if (fixed) {
    CK(cudaOccupancyMaxPotentialBlockSize(&minGrid, &threads, updateCentroids, 0, 512));
    updateCentroids<<<kK, threads, 0, su>>>(cent, pts, label, count);
  }
  CK(cudaDeviceSynchronize());
  const int chunks = 6;
  assignResident<<<8, 256, 0, sa>>>(pts, cent, label, word, assigned, chunks);
  CK(cudaGetLastError());
  printf("assignment kernel resident\n");
  for (int c = 1; c <= chunks; ++c) {
    if (!fixed) CK(cudaOccupancyMaxPotentialBlockSize(&minGrid, &threads, updateCentroids, 0, 512));
    updateCentroids<<<kK, threads, 0, su>>>(cent, pts, label, count);
    CK(cudaGetLastError());
    CK(cudaStreamSynchronize(su));
    *(volatile int *)word = c;
    printf("chunk %d handed over\n", c);
  }
  CK(cudaStreamSynchronize(sa));
  printf("done\n");
  return 0;
}
