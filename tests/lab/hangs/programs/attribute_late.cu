// The shared memory of a kernel is raised just before its first launch, when another kernel waits
// for that launch already.
#include "begin.cuh"

__global__ void listen(const volatile int* spectra, int wanted, float* power) {
  if (threadIdx.x == 0)
    while (*spectra < wanted) __nanosleep(100);
  __syncthreads();
  power[threadIdx.x] += 1;
}

__global__ void transform(int* spectra, float* samples) {
  extern __shared__ float window[];
  for (int at = threadIdx.x; at < 16384; at += blockDim.x) window[at] = at;
  __syncthreads();
  samples[threadIdx.x] = window[16383 - threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(spectra, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kShared = 16384 * sizeof(float);
  auto* spectra = zeros<int>(1);
  auto *power = zeros<float>(256), *samples = zeros<float>(256);
  load(listen);
  const cudaStream_t listener = stream_of_its_own(), work = stream_of_its_own();
  if (fixed) allow(transform, kShared);
  listen<<<1, 256, 0, listener>>>(spectra, 4, power);
  CHECK(cudaGetLastError());
  usleep(50000);
  if (!fixed) allow(transform, kShared);
  for (int block = 0; block < 4; ++block) transform<<<1, 256, kShared, work>>>(spectra, samples);
  CHECK(cudaGetLastError());
  return finish();
}
