// A reader waits for a page. The page comes from the pool of the device, in the order of stream 0,
// and another stream fills it and passes it on, after an event that follows the allocation.
#include "begin.cuh"

__global__ void read_page(int* const volatile* slot, int* out) {
  int* page;
  while ((page = *slot) == nullptr) __nanosleep(500);
  out[threadIdx.x] = page[threadIdx.x];
}

__global__ void fill_page(int* page, int** slot) {
  page[threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    atomicExch(reinterpret_cast<unsigned long long*>(slot),
               reinterpret_cast<unsigned long long>(page));
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto** slot = zeros<int*>(1);
  auto* out = zeros<int>(256);
  load(read_page);
  load(fill_page);
  cudaStream_t reading, filling;
  CHECK(cudaStreamCreate(&reading));
  CHECK(cudaStreamCreateWithFlags(&filling, cudaStreamNonBlocking));
  cudaMemPool_t pool;
  unsigned long long keep = ~0ull;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  int* page;
  CHECK(cudaMallocAsync(&page, 1 << 20, nullptr));  // the pool has its first memory
  CHECK(cudaFreeAsync(page, nullptr));
  CHECK(cudaDeviceSynchronize());
  cudaEvent_t allocated;
  CHECK(cudaEventCreateWithFlags(&allocated, cudaEventDisableTiming));

  read_page<<<1, 256, 0, reading>>>(slot, out);
  const cudaStream_t order = fixed ? filling : nullptr;
  CHECK(cudaMallocAsync(&page, 1 << 18, order));
  CHECK(cudaEventRecord(allocated, order));
  CHECK(cudaStreamWaitEvent(filling, allocated, 0));
  fill_page<<<1, 256, 0, filling>>>(page, slot);
  CHECK(cudaGetLastError());
  return finish();
}
