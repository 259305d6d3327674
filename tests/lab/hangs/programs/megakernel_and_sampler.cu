// A megakernel of a block per SM runs the layers of a model, with a barrier over all its blocks
// after each. A sampler is up already, and waits for the logits that the last layer leaves.
#include "begin.cuh"

constexpr int kLayers = 12;

__global__ void sample(volatile int* up, const volatile int* logits_ready, int* token) {
  extern __shared__ float scores[];
  scores[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    *up = 1;
    while (*logits_ready == 0) __nanosleep(500);
    *token = static_cast<int>(scores[7]);
  }
}

__global__ void interpret(int* arrived, int* logits_ready, float* activations) {
  extern __shared__ float pages[];
  for (int layer = 1; layer <= kLayers; ++layer) {
    pages[threadIdx.x] = activations[threadIdx.x] + layer;
    __syncthreads();
    activations[blockIdx.x * blockDim.x + threadIdx.x] = pages[threadIdx.x ^ 1];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1);
      while (atomicAdd(arrived, 0) < layer * static_cast<int>(gridDim.x)) {
      }
    }
    __syncthreads();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) atomicExch(logits_ready, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int pages = 200 << 10, scores = (fixed ? 16 : 60) << 10;
  auto *arrived = zeros<int>(1), *ready = zeros<int>(1), *token = zeros<int>(1);
  auto* activations = zeros<float>(132 * 256);
  auto* up = shared_with_host<int>(1);
  allow(interpret, pages);
  allow(sample, scores);
  for (const void* each : {(const void*)interpret, (const void*)sample})
    CHECK(cudaFuncSetAttribute(each, cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared));
  const auto sampling = stream_of_its_own(), model = stream_of_its_own();
  sample<<<1, 256, scores, sampling>>>(up, ready, token);
  CHECK(cudaGetLastError());
  while (*static_cast<volatile int*>(up) == 0) {
  }
  interpret<<<132, 256, pages, model>>>(arrived, ready, activations);
  CHECK(cudaGetLastError());
  return finish();
}
