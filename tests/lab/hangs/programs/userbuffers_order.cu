// Tensor parallelism with an overlapped gather: the product waits, chunk by chunk, for what the
// gather of another stream brings. Training scripts set one connection for this.
#include "begin.cuh"

constexpr int kChunks = 8;

__global__ void product(const volatile int* chunks, const float* weights, float* out) {
  float sum = 0;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    if (threadIdx.x == 0)
      while (chunks[chunk] == 0) __nanosleep(100);
    __syncthreads();
    for (int k = 0; k < 256; ++k) sum += weights[(chunk * 256 + k) * 256 + threadIdx.x];
  }
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}

__global__ void activate(float* out) {
  float& x = out[blockIdx.x * 256 + threadIdx.x];
  x = x > 0 ? x : 0.01f * x;
}

__global__ void gather(const float* shard, float* weights, int* chunks) {
  for (int k = 0; k < 256; ++k)
    weights[(blockIdx.x * 256 + k) * 256 + threadIdx.x] = shard[k * 256 + threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(chunks + blockIdx.x, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* chunks = zeros<int>(kChunks);
  auto *weights = zeros<float>(kChunks * 256 * 256), *shard = zeros<float>(256 * 256);
  auto* out = zeros<float>(32 * 256);
  load(product);
  load(activate);
  load(gather);
  const auto compute = stream_of_its_own(), communicate = stream_of_its_own();
  if (fixed) gather<<<kChunks, 256, 0, communicate>>>(shard, weights, chunks);
  product<<<32, 256, 0, compute>>>(chunks, weights, out);
  activate<<<32, 256, 0, compute>>>(out);
  if (!fixed) gather<<<kChunks, 256, 0, communicate>>>(shard, weights, chunks);
  CHECK(cudaGetLastError());
  return finish();
}
