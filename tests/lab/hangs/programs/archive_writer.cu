// Archives frames: the GPU compresses a frame, a host function in the stream writes it to slow
// storage (here: a simulated tape).
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
#include <chrono>
#include <thread>

constexpr int kFrame = 1 << 18;

__global__ void makeFrame(unsigned char *f, int t) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kFrame; i += gridDim.x * blockDim.x)
    f[i] = (i * t) >> 3;
}
__global__ void compressFrame(const unsigned char *f, unsigned char *z) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kFrame / 2; i += gridDim.x * blockDim.x)
    z[i] = (f[2 * i] & 0xf0) | (f[2 * i + 1] >> 4);
}

struct Tape {
  long long bytes = 0;
  int frames = 0;
  unsigned char *host;
};

static void CUDART_CB writeFrame(void *p) {
  Tape *t = (Tape *)p;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // tape speed
  t->bytes += t->host[100] + kFrame / 2;
  ++t->frames;
}

int main() {
  take_turn();
  setvbuf(stdout, nullptr, _IOLBF, 0);
  unsigned char *f, *z;
  static Tape tape;
  CK(cudaMalloc(&f, kFrame));
  CK(cudaMalloc(&z, kFrame / 2));
  CK(cudaMallocHost(&tape.host, kFrame / 2));
  cudaStream_t s;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  makeFrame<<<64, 256, 0, s>>>(f, 1);
  compressFrame<<<64, 256, 0, s>>>(f, z);
  CK(cudaStreamSynchronize(s));
  printf("archive opened\n");
  for (int t = 0; t < 44; ++t) {
    makeFrame<<<64, 256, 0, s>>>(f, t);
    compressFrame<<<64, 256, 0, s>>>(f, z);
    CK(cudaMemcpyAsync(tape.host, z, kFrame / 2, cudaMemcpyDeviceToHost, s));
    CK(cudaLaunchHostFunc(s, writeFrame, &tape));
  }
  printf("44 frames enqueued\n");
  CK(cudaStreamSynchronize(s));
  printf("%d frames, %lld bytes\n", tape.frames, tape.bytes);
  return 0;
}
