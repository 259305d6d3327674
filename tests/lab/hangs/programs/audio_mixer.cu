// Audio mixer: the mix kernel keeps mixing while it waits for the gain table of the coming block,
// which the host uploads asynchronously.
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

constexpr int kSamples = 48000;
constexpr int kTracks = 16;

struct GainTable {
  int version;
  float gain[kTracks];
};

__global__ void synth(float *tracks) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kSamples * kTracks;
       i += gridDim.x * blockDim.x)
    tracks[i] = __sinf(i * 0.003f * (1 + i / kSamples));
}

__global__ void mixBlock(const float *tracks, volatile GainTable *table, int version, float *bus) {
  __shared__ float g[kTracks];
  if (threadIdx.x == 0) {
    while (table->version < version) __nanosleep(1000);
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x < kTracks) g[threadIdx.x] = table->gain[threadIdx.x];
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kSamples; i += gridDim.x * blockDim.x) {
    float s = 0;
    for (int t = 0; t < kTracks; ++t) s += g[t] * tracks[t * kSamples + i];
    bus[i] = s;
  }
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  float *tracks, *bus;
  GainTable *table, *staging;
  CK(cudaMalloc(&tracks, sizeof(float) * kSamples * kTracks));
  CK(cudaMalloc(&bus, sizeof(float) * kSamples));
  CK(cudaMalloc(&table, sizeof(GainTable)));
  CK(cudaMallocHost(&staging, sizeof(GainTable) * 2));
  CK(cudaMemset(table, 0, sizeof(GainTable)));
  memset(staging, 0, sizeof(GainTable) * 2);
  cudaStream_t mix, control;
  CK(cudaStreamCreateWithFlags(&mix, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&control, cudaStreamNonBlocking));
  synth<<<264, 256, 0, mix>>>(tracks);
  mixBlock<<<32, 256, 0, mix>>>(tracks, table, 0, bus);
  CK(cudaStreamSynchronize(mix));
  CK(cudaMemcpyAsync(&table->version, &staging[0].version, sizeof(int), cudaMemcpyHostToDevice,
                     control));
  CK(cudaStreamSynchronize(control));
  printf("first block mixed with the default gains\n");
  for (int v = 1; v <= 20; ++v) {
    GainTable *s = &staging[v & 1];
    s->version = v;
    for (int t = 0; t < kTracks; ++t) s->gain[t] = 1.0f / (t + v);
    mixBlock<<<32, 256, 0, mix>>>(tracks, table, v, bus);
    cudaStream_t up = fixed ? control : mix;
    CK(cudaMemcpyAsync((char *)table + sizeof(int), s->gain, sizeof s->gain, cudaMemcpyHostToDevice,
                       up));
    CK(cudaMemcpyAsync(table, &s->version, sizeof(int), cudaMemcpyHostToDevice, up));
    CK(cudaStreamSynchronize(mix));
    CK(cudaStreamSynchronize(control));
    if (v % 5 == 0) printf("block %d mixed\n", v);
  }
  float first;
  CK(cudaMemcpy(&first, bus + 100, 4, cudaMemcpyDeviceToHost));
  printf("bus[100] = %f\n", first);
  return 0;
}
