// Kernels of five seconds in two streams of cudaStreamCreate, and small ones without a stream
// between them: all take turns.
#include "begin.cuh"

__global__ void factorise(long work, float* x) {
  float own = x[threadIdx.x];
  for (long i = 0; i < work; ++i) own = fmaf(own, 0.999f, 0.25f);
  x[threadIdx.x] = own;
}

__global__ void check(const float* x, int* bad) {
  if (x[threadIdx.x] != x[threadIdx.x]) atomicAdd(bad, 1);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* x = zeros<float>(128);
  auto* bad = zeros<int>(1);
  load(factorise);
  load(check);
  cudaStream_t streams[2];
  for (auto& stream : streams) CHECK(cudaStreamCreate(&stream));
  for (int i = 0; i < 4; ++i) {
    factorise<<<1, 64, 0, streams[i % 2]>>>(2'400'000'000, x + i % 2 * 64);
    check<<<1, 64>>>(x, bad);
  }
  CHECK(cudaGetLastError());
  return finish();
}
