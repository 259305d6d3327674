// A host function that counts frames is put into the null stream, between two kernels of two
// streams that meet.
#include "begin.cuh"

__global__ void left_eye(int* met, float* image) {
  if (threadIdx.x == 0) {
    atomicAdd(met, 1);
    while (atomicAdd(met, 0) < 2) __nanosleep(100);
  }
  __syncthreads();
  image[threadIdx.x] = 1;
}

__global__ void right_eye(int* met, float* image) {
  if (threadIdx.x == 0) {
    atomicAdd(met, 1);
    while (atomicAdd(met, 0) < 2) __nanosleep(100);
  }
  __syncthreads();
  image[64 + threadIdx.x] = 2;
}

void count_frame(void* frames) { ++*static_cast<int*>(frames); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* met = zeros<int>(1);
  auto* image = zeros<float>(128);
  load(left_eye);
  load(right_eye);
  cudaStream_t left, right;
  CHECK(cudaStreamCreate(&left));
  CHECK(cudaStreamCreate(&right));
  int frames = 0;
  left_eye<<<1, 64, 0, left>>>(met, image);
  if (!fixed) CHECK(cudaLaunchHostFunc(nullptr, count_frame, &frames));
  right_eye<<<1, 64, 0, right>>>(met, image);
  if (fixed) CHECK(cudaLaunchHostFunc(nullptr, count_frame, &frames));
  CHECK(cudaGetLastError());
  return finish();
}
