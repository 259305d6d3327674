// One kernel of about eight seconds on all SMs: random walks.
#include "begin.cuh"

__global__ void walk(float* ends, long long steps) {
  unsigned state = blockIdx.x * blockDim.x + threadIdx.x + 1;
  float at = 0;
  for (long long step = 0; step < steps; ++step) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    at = fmaf(at, 0.999f, (state & 1) ? 1.0f : -1.0f);
  }
  ends[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* ends = zeros<float>(132 * 128);
  load(walk);
  cudaEvent_t began, ended;
  CHECK(cudaEventCreate(&began));
  CHECK(cudaEventCreate(&ended));
  walk<<<132, 128>>>(ends, 10000000);  // how long is a step?
  CHECK(cudaEventRecord(began));
  walk<<<132, 128>>>(ends, 20000000);
  CHECK(cudaEventRecord(ended));
  CHECK(cudaEventSynchronize(ended));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, began, ended));
  walk<<<132, 128>>>(ends, static_cast<long long>(8000 / ms * 20000000));
  CHECK(cudaGetLastError());
  return finish();
}
