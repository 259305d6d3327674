// Pose estimation: a keypoint stage (own stream) and a refinement stage (own stream). Timing events
// mark the frame boundaries.
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

constexpr int kKeypoints = 1024;

__global__ void keypoints(float2 *kp, int frame, int *frameReady) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  kp[i] = make_float2(i * 0.5f + frame, i * 0.25f - frame);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(frameReady, 1);
}

__global__ void refinePose(const float2 *kp, float *pose, int *frameReady, int want) {
  __shared__ float sx, sy;
  if (threadIdx.x == 0) {
    sx = sy = 0.f;
    while (atomicAdd(frameReady, 0) < want) __nanosleep(800);
    __threadfence();
  }
  __syncthreads();
  float2 v = make_float2(((volatile const float *)kp)[2 * threadIdx.x],
                         ((volatile const float *)kp)[2 * threadIdx.x + 1]);
  atomicAdd(&sx, v.x);
  atomicAdd(&sy, v.y);
  __syncthreads();
  if (threadIdx.x == 0) {
    pose[0] = sx / blockDim.x;
    pose[1] = sy / blockDim.x;
  }
}

struct FrameTimer {
  cudaEvent_t begin, end;
  FrameTimer() {
    CK(cudaEventCreate(&begin));
    CK(cudaEventCreate(&end));
  }
  void start(cudaStream_t s) { CK(cudaEventRecord(begin, s)); }
  void stop(cudaStream_t s) { CK(cudaEventRecord(end, s)); }
  float ms() {
    float t;
    CK(cudaEventSynchronize(end));
    CK(cudaEventElapsedTime(&t, begin, end));
    return t;
  }
};

int main(int argc, char **argv) {
  take_turn();
  bool fixed = argc > 1 && !strcmp(argv[1], "fixed");
  setvbuf(stdout, nullptr, _IOLBF, 0);
  float2 *kp;
  float *pose;
  int *ready;
  CK(cudaMalloc(&kp, kKeypoints * sizeof(float2)));
  CK(cudaMalloc(&pose, 8));
  CK(cudaMalloc(&ready, 4));
  CK(cudaMemset(ready, 0, 4));
  cudaStream_t detect, refine;
  CK(cudaStreamCreateWithFlags(&detect, cudaStreamNonBlocking));
  CK(cudaStreamCreate(&refine));
  FrameTimer timer;
  const int blocks = kKeypoints / 256;
  keypoints<<<blocks, 256, 0, detect>>>(kp, 0, ready);
  CK(cudaStreamSynchronize(detect));
  refinePose<<<1, 256, 0, refine>>>(kp, pose, ready, blocks);
  CK(cudaDeviceSynchronize());
  printf("tracker initialised\n");
  for (int f = 1; f <= 25; ++f) {
    refinePose<<<1, 256, 0, refine>>>(kp, pose, ready, (f + 1) * blocks);
    timer.start(fixed ? detect : 0);
    // the detector belongs inside the timed range
    CK(cudaStreamWaitEvent(detect, timer.begin, 0));
    keypoints<<<blocks, 256, 0, detect>>>(kp, f, ready);
    timer.stop(detect);
    CK(cudaGetLastError());
    float ms = timer.ms();
    CK(cudaStreamSynchronize(refine));
    if (f % 5 == 0) printf("frame %d: detector %.3f ms\n", f, ms);
  }
  float h[2];
  CK(cudaMemcpy(h, pose, 8, cudaMemcpyDeviceToHost));
  printf("pose %.3f %.3f\n", h[0], h[1]);
  return 0;
}
