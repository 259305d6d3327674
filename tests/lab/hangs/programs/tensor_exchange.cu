// Exchange of activation shards between two logical ranks on one GPU, with stream memory operations
// as the doorbells (no host in the loop).
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

constexpr int kShard = 1 << 20;

__global__ void produceShard(float *shard, float scale) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kShard; i += gridDim.x * blockDim.x)
    shard[i] = scale * (i & 255);
}
__global__ void reduceShard(const float *a, const float *b, float *out) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kShard; i += gridDim.x * blockDim.x)
    out[i] = a[i] + b[i];
}

struct Rank {
  cudaStream_t s;
  float *mine, *peer, *out;
  CUdeviceptr bell;
  cudaEvent_t done;
};

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  CK(cudaSetDevice(0));
  CK(cudaFree(0));
  Rank r[2];
  for (int k = 0; k < 2; ++k) {
    CK(cudaStreamCreateWithFlags(&r[k].s, cudaStreamNonBlocking));
    CK(cudaMalloc(&r[k].mine, kShard * 4));
    CK(cudaMalloc(&r[k].peer, kShard * 4));
    CK(cudaMalloc(&r[k].out, kShard * 4));
    void *b;
    CK(cudaMalloc(&b, 4));
    CK(cudaMemset(b, 0, 4));
    r[k].bell = (CUdeviceptr)b;
    CK(cudaEventCreateWithFlags(&r[k].done, cudaEventDisableTiming));
    produceShard<<<64, 256, 0, r[k].s>>>(r[k].mine, 1.f);
    reduceShard<<<64, 256, 0, r[k].s>>>(r[k].mine, r[k].mine, r[k].out);
    CK(cudaEventRecord(r[k].done, r[k].s));
  }
  CK(cudaDeviceSynchronize());
  printf("ranks ready\n");
  for (int round = 1; round <= 10; ++round) {
    for (int k = 0; k < 2; ++k) {
      Rank &me = r[k], &other = r[1 - k];
      // the peer buffer of this round may be overwritten once the peer has reduced the last one;
      // rank 1 looks at the round that rank 0 has just enqueued
      if (!fixed || k == 0) CK(cudaStreamWaitEvent(me.s, other.done, 0));
      produceShard<<<64, 256, 0, me.s>>>(me.mine, (float)round);
      CK(cudaMemcpyAsync(other.peer, me.mine, kShard * 4, cudaMemcpyDeviceToDevice, me.s));
      CU(cuStreamWriteValue32((CUstream)me.s, other.bell, round, 0));
      CU(cuStreamWaitValue32((CUstream)me.s, me.bell, round, CU_STREAM_WAIT_VALUE_GEQ));
      reduceShard<<<64, 256, 0, me.s>>>(me.mine, me.peer, me.out);
      CK(cudaEventRecord(me.done, me.s));
    }
    CK(cudaGetLastError());
    CK(cudaStreamSynchronize(r[0].s));
    CK(cudaStreamSynchronize(r[1].s));
    printf("round %d exchanged\n", round);
  }
  float v;
  CK(cudaMemcpy(&v, r[0].out + 3, 4, cudaMemcpyDeviceToHost));
  printf("out[3] = %f\n", v);
  return 0;
}
