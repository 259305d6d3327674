// One kernel that computes for about 30 s.
#include "begin.cuh"

__global__ void integrate(float* out, long long steps, float rate) {
  float x = threadIdx.x * 1e-3f, y = 1;
  for (long long i = 0; i < steps; ++i) {
    x = fmaf(y, rate, x);
    y = fmaf(x, -rate, y);
    x = fmaf(y, rate, x);
    y = fmaf(x, -rate, y);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x + y;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* out = zeros<float>(132 * 256);
  integrate<<<132, 256>>>(out, 3500000000ll, 1e-4f);
  CHECK(cudaGetLastError());
  return finish();
}
