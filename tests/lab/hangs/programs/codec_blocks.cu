// Block codec: the entropy coder is launched plainly, the transform comes from a helper library
// that uses its own stream. The coder starts on headers and waits for each transformed block.
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

constexpr int kBlk = 4096;
constexpr int kNumBlk = 24;

__global__ void transformBlocks(const short *in, short *coef, int *doneUpTo, int frame) {
  for (int b = 0; b < kNumBlk; ++b) {
    for (int i = threadIdx.x; i < kBlk; i += blockDim.x)
      coef[b * kBlk + i] = (short)((in[b * kBlk + i] * 3 - in[b * kBlk + (i ^ 1)]) >> 1);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(doneUpTo, frame * kNumBlk + b + 1);
  }
}
__global__ void entropyCode(const short *coef, unsigned *bits, int *doneUpTo, int frame) {
  int b = blockIdx.x;
  if (threadIdx.x == 0) {
    atomicAdd(bits, 32);  // block header
    while (atomicAdd(doneUpTo, 0) < frame * kNumBlk + b + 1) __nanosleep(1000);
  }
  __syncthreads();
  unsigned n = 0;
  for (int i = threadIdx.x; i < kBlk; i += blockDim.x) {
    int c = ((volatile const short *)coef)[b * kBlk + i];
    n += c ? 33 - __clz(abs(c)) : 1;
  }
  atomicAdd(bits, n);
}

class TransformLib {
 public:
  explicit TransformLib(unsigned flags) { CK(cudaStreamCreateWithFlags(&s_, flags)); }
  void run(const short *in, short *coef, int *done, int frame) {
    transformBlocks<<<1, 512, 0, s_>>>(in, coef, done, frame);
    CK(cudaGetLastError());
  }
  void sync() { CK(cudaStreamSynchronize(s_)); }
  ~TransformLib() { cudaStreamDestroy(s_); }

 private:
  cudaStream_t s_;
};

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  short *in, *coef;
  unsigned *bits;
  int *done;
  CK(cudaMalloc(&in, kBlk * kNumBlk * 2));
  CK(cudaMalloc(&coef, kBlk * kNumBlk * 2));
  CK(cudaMalloc(&bits, 4));
  CK(cudaMalloc(&done, 4));
  CK(cudaMemset(in, 5, kBlk * kNumBlk * 2));
  CK(cudaMemset(bits, 0, 4));
  CK(cudaMemset(done, 0, 4));
  TransformLib lib(fixed ? cudaStreamNonBlocking : cudaStreamDefault);
  lib.run(in, coef, done, 0);
  lib.sync();
  entropyCode<<<kNumBlk, 128>>>(coef, bits, done, 0);
  CK(cudaDeviceSynchronize());
  printf("key frame coded\n");
  for (int f = 1; f < 30; ++f) {
    entropyCode<<<kNumBlk, 128>>>(coef, bits, done, f);
    CK(cudaGetLastError());
    lib.run(in, coef, done, f);
    lib.sync();
    if (f % 10 == 0) printf("frame %d coded\n", f);
  }
  unsigned h;
  CK(cudaMemcpy(&h, bits, 4, cudaMemcpyDeviceToHost));
  printf("%u bits\n", h);
  return 0;
}
