// cudaMemset between two kernels that pass a token: it is in the legacy stream.
#include "begin.cuh"

__global__ void accept_token(unsigned* token, unsigned mine, float* out) {
  while (atomicMax(token, 0u) != mine) __nanosleep(20);
  out[threadIdx.x] = mine;
}

__global__ void pass_token(unsigned* token, unsigned to) { atomicMax(token, to); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* token = zeros<unsigned>(1);
  auto* out = zeros<float>(32);
  auto* gradients = zeros<float>(1 << 20);
  load(accept_token);
  load(pass_token);
  cudaStream_t left, right;
  CHECK(cudaStreamCreate(&left));
  CHECK(cudaStreamCreate(&right));
  accept_token<<<1, 32, 0, left>>>(token, 7, out);
  if (fixed) {
    CHECK(cudaMemsetAsync(gradients, 0, sizeof(float) << 20, right));
  } else {
    CHECK(cudaMemset(gradients, 0, sizeof(float) << 20));
  }
  pass_token<<<1, 1, 0, right>>>(token, 7);
  CHECK(cudaGetLastError());
  return finish();
}
