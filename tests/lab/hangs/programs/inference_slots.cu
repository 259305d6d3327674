// A small inference service: resident executors take request tiles from a device queue, a tokenizer
// kernel in another stream fills the queue.
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

struct RequestQueue {
  unsigned head;   // next request to take
  unsigned tail;   // requests published so far
  unsigned total;  // requests of this batch
  unsigned served;
};

constexpr int kExecSmem = 120 * 1024;
constexpr int kTokSmem = 110 * 1024;

__global__ void executors(RequestQueue *q, const float *weights, float *logits) {
  extern __shared__ float tile[];
  __shared__ unsigned mine;
  for (int i = threadIdx.x; i < kExecSmem / 4 - 64; i += blockDim.x) tile[i] = weights[i & 1023];
  __syncthreads();
  for (;;) {
    if (threadIdx.x == 0) {
      mine = atomicAdd(&q->head, 1);
      if (mine < q->total)
        while (atomicAdd(&q->tail, 0) <= mine) __nanosleep(500);
    }
    __syncthreads();
    unsigned r = mine;
    if (r >= q->total) return;
    float acc = 0.f;
    for (int k = threadIdx.x; k < 4096; k += blockDim.x) acc += tile[k] * (float)(r + 1);
    atomicAdd(&logits[r & 255], acc);
    if (threadIdx.x == 0) atomicAdd(&q->served, 1);
    __syncthreads();
  }
}

__global__ void tokenize(RequestQueue *q, unsigned perBlock) {
  extern __shared__ float vocab[];
  for (int i = threadIdx.x; i < kTokSmem / 4; i += blockDim.x) vocab[i] = (float)i;
  __syncthreads();
  if (threadIdx.x == 0 && vocab[7] == 7.f) {
    __threadfence();
    atomicAdd(&q->tail, perBlock);
  }
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  cudaDeviceProp p;
  CK(cudaGetDeviceProperties(&p, 0));
  RequestQueue *q;
  float *w, *logits;
  CK(cudaMalloc(&q, sizeof *q));
  CK(cudaMalloc(&w, 1024 * 4));
  CK(cudaMalloc(&logits, 256 * 4));
  CK(cudaMemset(w, 0, 1024 * 4));
  CK(cudaMemset(logits, 0, 256 * 4));
  CK(cudaFuncSetAttribute(executors, cudaFuncAttributeMaxDynamicSharedMemorySize, kExecSmem));
  CK(cudaFuncSetAttribute(executors, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  CK(cudaFuncSetAttribute(tokenize, cudaFuncAttributeMaxDynamicSharedMemorySize, kTokSmem));
  CK(cudaFuncSetAttribute(tokenize, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  cudaStream_t sExec, sTok;
  CK(cudaStreamCreateWithFlags(&sExec, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&sTok, cudaStreamNonBlocking));

  // warm up: one small batch, tokenized first
  RequestQueue h = {0, 0, 48, 0};
  CK(cudaMemcpy(q, &h, sizeof h, cudaMemcpyHostToDevice));
  tokenize<<<24, 128, kTokSmem, sTok>>>(q, 2);
  CK(cudaStreamSynchronize(sTok));
  executors<<<24, 256, kExecSmem, sExec>>>(q, w, logits);
  CK(cudaDeviceSynchronize());
  printf("warm-up batch done on %s\n", p.name);

  h = {0, 0, 2400, 0};
  CK(cudaMemcpy(q, &h, sizeof h, cudaMemcpyHostToDevice));
  int execBlocks = fixed ? p.multiProcessorCount - 40 : p.multiProcessorCount;
  executors<<<execBlocks, 256, kExecSmem, sExec>>>(q, w, logits);
  CK(cudaGetLastError());
  tokenize<<<24, 128, kTokSmem, sTok>>>(q, 100);
  CK(cudaGetLastError());
  CK(cudaStreamSynchronize(sTok));
  CK(cudaStreamSynchronize(sExec));
  CK(cudaMemcpy(&h, q, sizeof h, cudaMemcpyDeviceToHost));
  printf("served %u of %u requests\n", h.served, h.total);
  return 0;
}
