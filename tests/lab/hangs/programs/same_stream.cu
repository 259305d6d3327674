// A kernel waits for what the next kernel of its own stream writes.
#include "begin.cuh"

__global__ void read_result(const volatile int* written, const float* result, float* out) {
  if (threadIdx.x == 0)
    while (!*written) __nanosleep(32);
  __syncthreads();
  out[threadIdx.x] = result[threadIdx.x];
}

__global__ void write_result(float* result, int* written) {
  result[threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(written, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* written = zeros<int>(1);
  auto *result = zeros<float>(64), *out = zeros<float>(64);
  const auto stream = stream_of_its_own();
  read_result<<<1, 64, 0, stream>>>(written, result, out);
  write_result<<<1, 64, 0, fixed ? stream_of_its_own() : stream>>>(result, written);
  CHECK(cudaGetLastError());
  return finish();
}
