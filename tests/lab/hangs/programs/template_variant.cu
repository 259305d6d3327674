// Warmed up for one type, and then used with another: a template has a kernel for each.
#include "begin.cuh"

template <class T>
__global__ void push(T* queue, int* pushed, T value) {
  queue[blockIdx.x * blockDim.x + threadIdx.x] = value;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(pushed, 1);
}

template <class T>
__global__ void pop(const T* queue, int* pushed, int wanted, T* out) {
  if (threadIdx.x == 0)
    while (atomicAdd(pushed, 0) < wanted) {
    }
  __syncthreads();
  out[threadIdx.x] = __ldcg(&queue[threadIdx.x]);
}

template <class T>
void hand_over(bool together) {
  auto *queue = zeros<T>(8 * 64), *out = zeros<T>(64);
  auto* pushed = zeros<int>(1);
  const auto one = stream_of_its_own(), two = stream_of_its_own();
  if (together) pop<T><<<1, 64, 0, one>>>(queue, pushed, 8, out);
  push<T><<<8, 64, 0, two>>>(queue, pushed, T(3));
  if (!together) pop<T><<<1, 64, 0, one>>>(queue, pushed, 8, out);
  CHECK(cudaGetLastError());
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  hand_over<float>(false);
  if (fixed) hand_over<double>(false);
  CHECK(cudaDeviceSynchronize());
  hand_over<double>(true);
  return finish();
}
