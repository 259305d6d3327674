// Allowing a kernel more shared memory loads it: while another one runs that waits for it.
#include "begin.cuh"

constexpr int kShared = 64 * 1024;

__global__ void combine(const int* partial_done, int parts, const float* partial, float* out) {
  if (threadIdx.x == 0) {
    int done;
    do {
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                   : "=r"(done)
                   : "l"(partial_done)
                   : "memory");
    } while (done < parts);
  }
  __syncthreads();
  float sum = 0;
  for (int part = 0; part < parts; ++part) sum += partial[part * 128 + threadIdx.x];
  out[threadIdx.x] = sum;
}

__global__ void attention_part(float* partial, int* partial_done) {
  extern __shared__ float scores[];
  scores[threadIdx.x] = expf(-0.01f * threadIdx.x);
  __syncthreads();
  partial[blockIdx.x * 128 + threadIdx.x] = scores[127 - threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(partial_done, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* done = zeros<int>(1);
  auto *partial = zeros<float>(4 * 128), *out = zeros<float>(128);
  if (fixed) allow(attention_part, kShared);
  const auto one = stream_of_its_own(), two = stream_of_its_own();
  combine<<<1, 128, 0, one>>>(done, 4, partial, out);
  CHECK(cudaGetLastError());
  if (!fixed) allow(attention_part, kShared);
  attention_part<<<4, 128, kShared, two>>>(partial, done);
  CHECK(cudaGetLastError());
  return finish();
}
