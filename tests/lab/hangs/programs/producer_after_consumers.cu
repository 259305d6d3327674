// Consumers in one stream, launched before the producer in another.
#include "begin.cuh"

constexpr int kConsumer = 130 * 1024, kProducer = 110 * 1024;  // bytes of shared memory

__global__ void attend(const float* pages, int* page_ready, int pages_count, float* out) {
  extern __shared__ float keys[];
  const int page = blockIdx.x % pages_count;
  if (threadIdx.x == 0)
    while (atomicAdd(&page_ready[page], 0) == 0) {
    }
  __syncthreads();
  keys[threadIdx.x] = pages[page * 128 + threadIdx.x];
  out[blockIdx.x * 128 + threadIdx.x] = keys[threadIdx.x] * 0.125f;
}

__global__ void fill_page(float* pages, int* page_ready) {
  extern __shared__ float staged[];
  staged[threadIdx.x] = threadIdx.x;
  __syncthreads();
  pages[blockIdx.x * 128 + threadIdx.x] = staged[127 - threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(&page_ready[blockIdx.x], 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* pages = zeros<float>(8 * 128);
  auto* ready = zeros<int>(8);
  auto* out = zeros<float>(132 * 128);
  allow(attend, kConsumer);
  allow(fill_page, kProducer);
  const auto consume = stream_of_its_own(), produce = stream_of_its_own();
  if (fixed) fill_page<<<8, 128, kProducer, produce>>>(pages, ready);
  attend<<<132, 128, kConsumer, consume>>>(pages, ready, 8, out);
  if (!fixed) fill_page<<<8, 128, kProducer, produce>>>(pages, ready);
  CHECK(cudaGetLastError());
  return finish();
}
