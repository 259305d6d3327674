// Hundreds of waves of blocks, each of some tens of milliseconds: one launch of a quarter minute.
#include "begin.cuh"

__global__ void __launch_bounds__(256) integrate(float* out, int steps) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  float x = at * 1e-7f, v = 1.0f;
  for (int step = 0; step < steps; ++step) {
    v -= x * 1e-3f;
    x += v * 1e-3f;
  }
  out[at] = x + v;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  constexpr int kBlocks = 132 * 8 * 400;
  auto* out = zeros<float>(static_cast<size_t>(kBlocks) * 256);
  integrate<<<kBlocks, 256>>>(out, 2200000);
  CHECK(cudaGetLastError());
  return finish();
}
