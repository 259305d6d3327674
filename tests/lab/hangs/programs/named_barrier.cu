// Specialised warps: the producers say that a buffer is full at another barrier than it is awaited.
#include "begin.cuh"

__device__ void arrive(int barrier) {
  asm volatile("bar.arrive %0, 256;" ::"r"(barrier) : "memory");
}

__device__ void wait(int barrier) { asm volatile("bar.sync %0, 256;" ::"r"(barrier) : "memory"); }

// Barriers 1 and 2: a buffer is full. 3 and 4: it is empty.
__global__ void matmul(const float* in, float* out, int chunks, int first) {
  __shared__ float buffers[2][128];
  const int lane = threadIdx.x % 128;
  if (threadIdx.x < 128) {
    float sum = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      wait(1 + chunk % 2);
      sum += buffers[chunk % 2][lane];
      arrive(3 + chunk % 2);
    }
    out[blockIdx.x * 128 + lane] = sum;
  } else {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (chunk >= 2) wait(3 + chunk % 2);
      buffers[chunk % 2][lane] = in[chunk * 128 + lane];
      if (chunk != first) arrive(1 + chunk % 2);
    }
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *in = zeros<float>(32 * 128), *out = zeros<float>(132 * 128);
  matmul<<<132, 256>>>(in, out, 32, fixed ? -1 : 7);
  CHECK(cudaGetLastError());
  return finish();
}
