// Radar tracker: the track filter waits on the device for the association weights of the scan.
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

constexpr int kTracks = 2048;

struct Weights {
  float w[kTracks];
};

__global__ void initTracks(float4 *tracks) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kTracks) tracks[i] = make_float4(i, 0.f, 1.f, 0.5f);
}

__global__ void filterTracks(float4 *tracks, volatile float *w, volatile int *scan, int want) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 t = tracks[i];
  t.x += t.z;
  t.y += t.w;  // prediction needs no weights
  if (threadIdx.x == 0) {
    while (*scan < want) __nanosleep(2000);
    __threadfence();
  }
  __syncthreads();
  t.z *= 1.f - w[i];
  t.w *= 1.f - w[i];
  tracks[i] = t;
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  float4 *tracks;
  float *w;
  int *scan, *hScan;
  Weights *hw;
  CK(cudaMalloc(&tracks, kTracks * sizeof(float4)));
  CK(cudaMalloc(&w, sizeof(Weights)));
  CK(cudaMalloc(&scan, 4));
  CK(cudaMallocHost(&hw, sizeof(Weights)));
  CK(cudaMallocHost(&hScan, 4));
  CK(cudaMemset(scan, 0, 4));
  cudaStream_t filter, upload;
  if (fixed)
    CK(cudaStreamCreateWithFlags(&filter, cudaStreamNonBlocking));
  else
    CK(cudaStreamCreate(&filter));
  CK(cudaStreamCreateWithFlags(&upload, cudaStreamNonBlocking));
  initTracks<<<kTracks / 256, 256>>>(tracks);
  CK(cudaDeviceSynchronize());
  for (int s = 0; s < 10; ++s) {
    // gate and weigh the plots of this scan on the CPU while the GPU predicts
    bool overlap = s > 0;
    if (overlap) filterTracks<<<kTracks / 256, 256, 0, filter>>>(tracks, w, scan, s + 1);
    for (int i = 0; i < kTracks; ++i) hw->w[i] = 0.01f * ((i * 31 + s) % 10);
    *hScan = s + 1;
    CK(cudaMemcpyAsync(w, hw, sizeof(Weights), cudaMemcpyHostToDevice));
    CK(cudaMemcpyAsync(scan, hScan, 4, cudaMemcpyHostToDevice));
    if (!overlap) {
      CK(cudaDeviceSynchronize());
      filterTracks<<<kTracks / 256, 256, 0, filter>>>(tracks, w, scan, s + 1);
    }
    CK(cudaStreamSynchronize(filter));
    CK(cudaDeviceSynchronize());
    printf("scan %d filtered\n", s);
  }
  float4 t;
  CK(cudaMemcpy(&t, tracks + 5, sizeof t, cudaMemcpyDeviceToHost));
  printf("track 5 at %.2f %.2f\n", t.x, t.y);
  return 0;
}
