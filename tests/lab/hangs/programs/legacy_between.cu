// Something small in the default stream, between two kernels in streams that hand over a buffer.
#include "begin.cuh"

__global__ void drain(int* full, float* ring, float* out) {
  for (int slot = 0; slot < 4; ++slot) {
    if (threadIdx.x == 0) {
      while (atomicCAS(&full[slot], 1, 0) != 1) {
      }
    }
    __syncthreads();
    out[slot * 64 + threadIdx.x] = ring[slot * 64 + threadIdx.x];
  }
}

__global__ void histogram(const float* in, int* bins) {
  atomicAdd(&bins[static_cast<int>(in[threadIdx.x]) & 15], 1);
}

__global__ void feed(int* full, float* ring) {
  for (int slot = 0; slot < 4; ++slot) {
    ring[slot * 64 + threadIdx.x] = slot;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&full[slot], 1);
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* full = zeros<int>(4);
  auto *ring = zeros<float>(256), *out = zeros<float>(256);
  auto* bins = zeros<int>(16);
  cudaStream_t draining, feeding;
  const unsigned flags = fixed ? cudaStreamNonBlocking : cudaStreamDefault;
  CHECK(cudaStreamCreateWithFlags(&draining, flags));
  CHECK(cudaStreamCreateWithFlags(&feeding, flags));
  drain<<<1, 64, 0, draining>>>(full, ring, out);
  histogram<<<1, 64>>>(out, bins);
  feed<<<1, 64, 0, feeding>>>(full, ring);
  CHECK(cudaGetLastError());
  return finish();
}
