// A producer kernel and a consumer kernel in two streams pass items on through a ring of four slots
// in global memory. The consumer takes tens of milliseconds for each, and the producer waits.
#include <cuda/atomic>

#include "begin.cuh"

constexpr int kSlots = 4;
using Counter = cuda::atomic_ref<int, cuda::thread_scope_device>;

__global__ void produce(float* slots, int* put, int* taken, int items) {
  for (int item = 0; item < items; ++item) {
    if (threadIdx.x == 0)
      while (item - Counter(*taken).load(cuda::memory_order_acquire) >= kSlots) __nanosleep(1000);
    __syncthreads();
    slots[item % kSlots * 128 + threadIdx.x] = item;
    __syncthreads();
    if (threadIdx.x == 0) Counter(*put).store(item + 1, cuda::memory_order_release);
  }
}

__global__ void consume(const float* slots, int* put, int* taken, int items, int steps,
                        float* out) {
  for (int item = 0; item < items; ++item) {
    if (threadIdx.x == 0)
      while (Counter(*put).load(cuda::memory_order_acquire) <= item) __nanosleep(1000);
    __syncthreads();
    float x = __ldcg(slots + item % kSlots * 128 + threadIdx.x);
    for (int step = 0; step < steps; ++step) x = x * 0.99999f + 0.25f;
    out[threadIdx.x] += x;
    __syncthreads();
    if (threadIdx.x == 0) Counter(*taken).store(item + 1, cuda::memory_order_release);
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto *slots = zeros<float>(kSlots * 128), *out = zeros<float>(128);
  auto *put = zeros<int>(1), *taken = zeros<int>(1);
  load(produce);
  load(consume);
  const int items = 600;
  const auto putting = stream_of_its_own(), taking = stream_of_its_own();
  produce<<<1, 128, 0, putting>>>(slots, put, taken, items);
  consume<<<1, 128, 0, taking>>>(slots, put, taken, items, 16000000, out);
  CHECK(cudaGetLastError());
  return finish();
}
