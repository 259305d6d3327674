// Blocks take one of eight scratch slots for each item, from a semaphore of libcu++, and give it
// back after the item. Items that are malformed are skipped.
#include <cuda/semaphore>
#include <new>

#include "begin.cuh"

using Slots = cuda::counting_semaphore<cuda::thread_scope_device, 64>;

__global__ void make(Slots* slots) { new (slots) Slots(8); }

__global__ void parse(Slots* slots, const int* items, int count, float* results, bool always) {
  for (int item = blockIdx.x; item < count; item += gridDim.x) {
    if (threadIdx.x == 0) slots->acquire();
    __syncthreads();
    const bool malformed = items[item] < 0;
    if (malformed && !always) continue;
    if (!malformed) results[item * 64 + threadIdx.x] = items[item] * 0.5f;
    __syncthreads();
    if (threadIdx.x == 0) slots->release();
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int count = 640;
  auto* slots = reinterpret_cast<Slots*>(zeros<char>(sizeof(Slots)));
  auto* items = zeros<int>(count);
  auto* results = zeros<float>(count * 64);
  int values[count];
  for (int i = 0; i < count; ++i) values[i] = i % 16 == 5 ? -1 : i;
  CHECK(cudaMemcpy(items, values, sizeof(values), cudaMemcpyHostToDevice));
  load(parse);
  make<<<1, 1>>>(slots);
  CHECK(cudaDeviceSynchronize());
  parse<<<64, 64>>>(slots, items, count, results, fixed);
  CHECK(cudaGetLastError());
  return finish();
}
