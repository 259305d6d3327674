// A transport sweep over 48 slabs, a stream for each: a kernel waits for the flux that enters from
// the next slab, another computes what leaves. The boundary comes last, in one more stream.
#include "begin.cuh"

constexpr int kSlabs = 48, kAngles = 128;

__global__ void receive(int slab, const volatile int* left, const float* flux, float* entering) {
  if (threadIdx.x == 0)
    while (left[slab + 1] == 0) __nanosleep(300);
  __syncthreads();
  entering[slab * kAngles + threadIdx.x] = flux[(slab + 1) * kAngles + threadIdx.x];
}

__global__ void sweep(int slab, const float* entering, float* flux, int* left) {
  float x = entering[slab * kAngles + threadIdx.x];
  for (int cell = 0; cell < 500; ++cell) x = 0.99f * x + 0.01f;
  flux[slab * kAngles + threadIdx.x] = x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(left + slab, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* left = zeros<int>(kSlabs + 1);
  auto* flux = zeros<float>((kSlabs + 1) * kAngles);
  auto* entering = zeros<float>((kSlabs + 1) * kAngles);
  load(receive);
  load(sweep);
  cudaStream_t streams[kSlabs + 1];
  for (auto& each : streams) each = stream_of_its_own();
  for (int step = 0; step <= kSlabs; ++step) {
    const int slab = fixed ? kSlabs - step : step;
    if (slab < kSlabs) receive<<<1, kAngles, 0, streams[slab]>>>(slab, left, flux, entering);
    sweep<<<1, kAngles, 0, streams[slab]>>>(slab, entering, flux, left);
  }
  CHECK(cudaGetLastError());
  return finish();
}
