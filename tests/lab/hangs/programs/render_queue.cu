// Tile queue of a path tracer: block 0 splits the image into jobs, the others trace them.
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

constexpr int kCap = 1024;

struct JobQueue {
  int jobs[kCap];
  int count;
  int taken;
  int closed;
};

__global__ void traceTiles(JobQueue *q, float *image, int tiles, int maxSplit, int closeAlways) {
  if (blockIdx.x == 0) {
    if (threadIdx.x) return;
    int made = 0;
    for (int t = 0; t < tiles; ++t) {
      if (made == maxSplit) {
        if (!closeAlways) return;  // queue budget used up
        break;
      }
      q->jobs[made++] = t * 7 % kCap;
      __threadfence();
      atomicExch(&q->count, made);
    }
    atomicExch(&q->closed, 1);
    return;
  }
  __shared__ int job;
  for (;;) {
    if (threadIdx.x == 0) {
      int mine = atomicAdd(&q->taken, 1);
      job = -1;
      for (;;) {
        if (mine < atomicAdd(&q->count, 0)) {
          __threadfence();
          job = ((volatile JobQueue *)q)->jobs[mine];
          break;
        }
        if (atomicAdd(&q->closed, 0) && mine >= atomicAdd(&q->count, 0)) break;
        __nanosleep(1000);
      }
    }
    __syncthreads();
    int j = job;
    __syncthreads();
    if (j < 0) return;
    float v = 0;
    for (int b = 0; b < 200; ++b) v = v * 0.5f + __sinf(b + j + threadIdx.x);
    atomicAdd(&image[j], v);
  }
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  JobQueue *q;
  float *image;
  CK(cudaMalloc(&q, sizeof *q));
  CK(cudaMalloc(&image, kCap * 4));
  CK(cudaMemset(image, 0, kCap * 4));
  int frames[3] = {64, 256, 700};
  for (int f = 0; f < 3; ++f) {
    CK(cudaMemset(q, 0, sizeof *q));
    printf("frame %d: %d tiles\n", f, frames[f]);
    traceTiles<<<40, 64>>>(q, image, frames[f], 512, fixed);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
    int taken;
    CK(cudaMemcpy(&taken, &q->taken, 4, cudaMemcpyDeviceToHost));
    printf("  traced, %d claims\n", taken);
  }
  CK(cudaFree(q));
  CK(cudaFree(image));
  return 0;
}
