// A block for each of two thousand million pairs: one kernel of about 20 seconds.
#include "begin.cuh"

__global__ void interact(int steps, float* energy) {
  float x = blockIdx.x % 1000 + threadIdx.x;
  for (int i = 0; i < steps; ++i) x = fmaf(x, 0.999f, 0.01f);
  if (x == 12345.0f) atomicAdd(energy, x);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* energy = zeros<float>(1);
  load(interact);
  interact<<<2'000'000'000, 64>>>(4000, energy);
  CHECK(cudaGetLastError());
  return finish();
}
