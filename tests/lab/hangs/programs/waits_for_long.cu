// A kernel polls for what another one writes that computes for about 25 s.
#include "begin.cuh"

__global__ void factorise(double* matrix, long long turns, int* factorised) {
  double x = 1 + threadIdx.x;
  for (long long i = 0; i < turns; ++i) x = fma(x, 0.999999, 1e-6);
  matrix[blockIdx.x * 64 + threadIdx.x] = x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(factorised, 1);
}

__global__ void solve(const double* matrix, int blocks, int* factorised, double* out) {
  if (threadIdx.x == 0)
    while (atomicAdd(factorised, 0) < blocks) __nanosleep(1000);
  __syncthreads();
  out[threadIdx.x] = 1 / matrix[threadIdx.x];
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto *matrix = zeros<double>(32 * 64), *out = zeros<double>(64);
  auto* factorised = zeros<int>(1);
  load(factorise);
  load(solve);
  factorise<<<32, 64, 0, stream_of_its_own()>>>(matrix, 8000000000ll, factorised);
  solve<<<1, 64, 0, stream_of_its_own()>>>(matrix, 32, factorised, out);
  CHECK(cudaGetLastError());
  return finish();
}
