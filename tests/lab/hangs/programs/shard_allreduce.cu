// Ring all-reduce between blocks of one launch: chunk by chunk, each block adds its part and passes
// the chunk on to its right neighbour.
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

constexpr int kRanks = 16;
constexpr int kChunk = 1024;

__device__ int slotOf(int rank, int step, int depth) { return rank * depth + step % depth; }

__global__ void ringReduce(const float *in, float *box, int *flag, float *out, int steps,
                           int sendDepth, int recvDepth) {
  int r = blockIdx.x, right = (r + 1) % kRanks;
  float acc[kChunk / 128];
  for (int k = 0; k < kChunk / 128; ++k) acc[k] = in[r * kChunk + k * 128 + threadIdx.x];
  for (int s = 0; s < steps; ++s) {
    int o = slotOf(right, s, sendDepth);
    for (int k = 0; k < kChunk / 128; ++k)
      ((volatile float *)box)[o * kChunk + k * 128 + threadIdx.x] = acc[k];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&flag[o], s + 1);
    int m = slotOf(r, s, recvDepth);
    if (threadIdx.x == 0)
      while (atomicAdd(&flag[m], 0) < s + 1) __nanosleep(200);
    __syncthreads();
    for (int k = 0; k < kChunk / 128; ++k)
      acc[k] = 0.5f * (acc[k] + ((volatile float *)box)[m * kChunk + k * 128 + threadIdx.x]);
  }
  for (int k = 0; k < kChunk / 128; ++k) out[r * kChunk + k * 128 + threadIdx.x] = acc[k];
}
__global__ void fillShard(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i / kChunk;
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int slots = kRanks * 64;
  float *in, *box, *out;
  int *flag;
  CK(cudaMalloc(&in, kRanks * kChunk * 4));
  CK(cudaMalloc(&out, kRanks * kChunk * 4));
  CK(cudaMalloc(&box, (size_t)slots * kChunk * 4));
  CK(cudaMalloc(&flag, slots * 4));
  fillShard<<<kRanks * kChunk / 256, 256>>>(in, kRanks * kChunk);
  int depths[2][2] = {{64, 64}, {fixed ? 64 : 32, 64}};  // send, receive depth
  for (int run = 0; run < 2; ++run) {
    CK(cudaMemset(flag, 0, slots * 4));
    ringReduce<<<kRanks, 128>>>(in, box, flag, out, run ? 48 : 4, depths[run][0], depths[run][1]);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
    printf("run %d done\n", run);
  }
  float h;
  CK(cudaMemcpy(&h, out, 4, cudaMemcpyDeviceToHost));
  printf("out[0] = %f\n", h);
  return 0;
}
