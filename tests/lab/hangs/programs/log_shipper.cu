// Log records are packed on the GPU and shipped by host functions which sit in the stream.
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
#include <condition_variable>
#include <mutex>

constexpr int kRec = 4096;

__global__ void packRecords(int *rec, int batch) {
  for (int i = threadIdx.x; i < kRec; i += blockDim.x) rec[i] = batch * 1000 + i % 1000;
}
__global__ void checksum(const int *rec, unsigned *sum) {
  unsigned s = 0;
  for (int i = threadIdx.x; i < kRec; i += blockDim.x) s += rec[i];
  atomicAdd(sum, s);
}

struct Shipper {
  std::mutex m;
  std::condition_variable cv;
  int acked = 0;
  unsigned *hostSum;
  int shipped = 0;
};
struct Ticket {
  Shipper *sh;
  int batch;
};

static void CUDART_CB onPacked(void *p) {  // ship, then wait for the acknowledgement
  Ticket *t = (Ticket *)p;
  std::unique_lock<std::mutex> g(t->sh->m);
  t->sh->cv.wait(g, [&] { return t->sh->acked >= t->batch; });
  ++t->sh->shipped;
}
static void CUDART_CB onChecked(void *p) {  // the checksum acknowledges the batch
  Ticket *t = (Ticket *)p;
  std::lock_guard<std::mutex> g(t->sh->m);
  t->sh->acked = t->batch;
  t->sh->cv.notify_all();
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  int *rec;
  unsigned *sum;
  static Shipper sh;
  static Ticket tickets[64];
  CK(cudaMalloc(&rec, kRec * 4));
  CK(cudaMalloc(&sum, 4));
  CK(cudaMemset(sum, 0, 4));
  CK(cudaMallocHost(&sh.hostSum, 4));
  cudaStream_t s;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  packRecords<<<1, 256, 0, s>>>(rec, 0);
  checksum<<<1, 256, 0, s>>>(rec, sum);
  CK(cudaStreamSynchronize(s));
  printf("shipper up\n");
  for (int b = 1; b <= 20; ++b) {
    tickets[b] = {&sh, b};
    packRecords<<<1, 256, 0, s>>>(rec, b);
    if (!fixed) CK(cudaLaunchHostFunc(s, onPacked, &tickets[b]));
    checksum<<<1, 256, 0, s>>>(rec, sum);
    CK(cudaMemcpyAsync(sh.hostSum, sum, 4, cudaMemcpyDeviceToHost, s));
    CK(cudaLaunchHostFunc(s, onChecked, &tickets[b]));
    if (fixed) CK(cudaLaunchHostFunc(s, onPacked, &tickets[b]));
  }
  printf("20 batches enqueued\n");
  CK(cudaStreamSynchronize(s));
  printf("shipped %d, checksum %u\n", sh.shipped, *sh.hostSum);
  return 0;
}
