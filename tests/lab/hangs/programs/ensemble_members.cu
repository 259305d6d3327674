// Ensemble forecast: each member has its own stream with a forecast step and an output step. After
// a forecast step the members agree on a common time step.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "turn.cuh"
#define CK(x)                                                                    \
  do {                                                                           \
    cudaError_t e_ = (x);                                                        \
    if (e_ != cudaSuccess) {                                                     \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

constexpr int kState = 4096;

__global__ void forecast(float *state, int member, unsigned *agreed, float *dt, unsigned members) {
  float *s = state + (size_t)member * kState;
  float worst = 0.f;
  for (int i = threadIdx.x; i < kState; i += blockDim.x) {
    s[i] = s[i] * 0.99f + 0.01f * (i % (member + 2));
    worst = fmaxf(worst, fabsf(s[i]));
  }
  atomicMax((int *)dt, __float_as_int(worst));
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(agreed, 1);
    while (atomicAdd(agreed, 0) < members) __nanosleep(1000);
  }
  __syncthreads();
  float h = 0.1f / (1.f + __int_as_float(atomicAdd((int *)dt, 0)));
  for (int i = threadIdx.x; i < kState; i += blockDim.x) s[i] += h;
}

__global__ void writeOut(const float *state, int member, float *mean) {
  float v = 0;
  for (int i = threadIdx.x; i < kState; i += blockDim.x) v += state[(size_t)member * kState + i];
  atomicAdd(&mean[member], v / kState);
}

static void cycle(std::vector<cudaStream_t> &st, int members, float *state, unsigned *agreed,
                  float *dt, float *mean) {
  CK(cudaMemset(agreed, 0, 4));
  CK(cudaMemset(dt, 0, 4));
  CK(cudaDeviceSynchronize());
  for (int m = 0; m < members; ++m) {
    forecast<<<1, 128, 0, st[m]>>>(state, m, agreed, dt, (unsigned)members);
    writeOut<<<1, 128, 0, st[m]>>>(state, m, mean);
  }
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  int members = fixed ? 6 : 96;
  float *state, *dt, *mean;
  unsigned *agreed;
  CK(cudaMalloc(&state, (size_t)96 * kState * 4));
  CK(cudaMalloc(&dt, 4));
  CK(cudaMalloc(&mean, 96 * 4));
  CK(cudaMalloc(&agreed, 4));
  CK(cudaMemset(state, 0, (size_t)96 * kState * 4));
  CK(cudaMemset(mean, 0, 96 * 4));
  std::vector<cudaStream_t> st(members);
  for (auto &s : st) CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  cycle(st, 1, state, agreed, dt, mean);
  printf("control member ready\n");
  for (int c = 0; c < 4; ++c) {
    cycle(st, members, state, agreed, dt, mean);
    printf("cycle %d of %d members done\n", c, members);
  }
  float h;
  CK(cudaMemcpy(&h, mean, 4, cudaMemcpyDeviceToHost));
  printf("mean of member 0: %f\n", h);
  return 0;
}
