// Overlap of a product with what it waits for, with the one hardware queue that a launcher asked
// for.
#include "begin.cuh"

__global__ void product(const volatile int* chunk_ready, float* out) {
  while (*chunk_ready == 0) {
  }
  out[threadIdx.x] = threadIdx.x * 0.5f;
}

__global__ void activate(float* out) { out[threadIdx.x] = fmaxf(out[threadIdx.x], 1.0f); }

__global__ void receive(int* chunk_ready) { atomicExch(chunk_ready, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", fixed ? "8" : "1", 1);
  auto* ready = zeros<int>(1);
  auto* out = zeros<float>(128);
  load(product);
  load(activate);
  load(receive);
  const auto compute = stream_of_its_own(), transfer = stream_of_its_own();
  product<<<1, 128, 0, compute>>>(ready, out);
  activate<<<1, 128, 0, compute>>>(out);
  receive<<<1, 1, 0, transfer>>>(ready);
  CHECK(cudaGetLastError());
  return finish();
}
