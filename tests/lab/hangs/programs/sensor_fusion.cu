// Sensor fusion: camera and lidar streams; the fuse kernel of the camera stream polls for the lidar
// sweep. Deployed on a box whose launch script keeps the number of GPU connections small.
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

constexpr int kPoints = 1 << 16;

__global__ void lidarSweep(float *points, int *sweepId, int id) {
  for (int i = threadIdx.x; i < kPoints; i += blockDim.x) points[i] = sinf(i * 0.01f) + id;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(sweepId, id);
}

__global__ void fuseCamera(const float *image, const float *points, int *sweepId, int want,
                           float *fused) {
  if (threadIdx.x == 0)
    while (atomicAdd(sweepId, 0) < want) __nanosleep(500);
  __syncthreads();
  for (int i = threadIdx.x; i < kPoints; i += blockDim.x)
    fused[i] = image[i] * 0.5f + ((volatile const float *)points)[i] * 0.5f;
}

__global__ void detect(const float *fused, float *score) {
  float s = 0;
  for (int i = threadIdx.x; i < kPoints; i += blockDim.x) s += fabsf(fused[i]);
  atomicAdd(score, s);
}

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (!fixed) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  float *image, *points, *fused, *score;
  int *sweepId;
  CK(cudaMalloc(&image, kPoints * 4));
  CK(cudaMalloc(&points, kPoints * 4));
  CK(cudaMalloc(&fused, kPoints * 4));
  CK(cudaMalloc(&score, 4));
  CK(cudaMalloc(&sweepId, 4));
  CK(cudaMemset(image, 0, kPoints * 4));
  CK(cudaMemset(score, 0, 4));
  CK(cudaMemset(sweepId, 0, 4));
  cudaStream_t cam, lid;
  CK(cudaStreamCreateWithFlags(&cam, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&lid, cudaStreamNonBlocking));
  CK(cudaDeviceSynchronize());
  // calibration frame: lidar first
  lidarSweep<<<1, 256, 0, lid>>>(points, sweepId, 1);
  CK(cudaStreamSynchronize(lid));
  fuseCamera<<<1, 256, 0, cam>>>(image, points, sweepId, 1, fused);
  detect<<<1, 256, 0, cam>>>(fused, score);
  CK(cudaDeviceSynchronize());
  printf("calibrated\n");
  for (int frame = 2; frame < 12; ++frame) {
    // the camera is a little ahead of the lidar
    fuseCamera<<<1, 256, 0, cam>>>(image, points, sweepId, frame, fused);
    detect<<<1, 256, 0, cam>>>(fused, score);
    lidarSweep<<<1, 256, 0, lid>>>(points, sweepId, frame);
    CK(cudaGetLastError());
    CK(cudaStreamSynchronize(cam));
    printf("frame %d fused\n", frame);
  }
  float h;
  CK(cudaMemcpy(&h, score, 4, cudaMemcpyDeviceToHost));
  printf("score %f\n", h);
  return 0;
}
