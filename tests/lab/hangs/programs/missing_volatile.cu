// A consumer polls a flag that another kernel sets, and the pointer is not volatile: the compiler
// reads the flag once before the loop. The producer ends, and the consumer does not see it.
#include "begin.cuh"

constexpr int kThreads = 128;

template <class Flag>
__global__ void consume(Flag flag, const float* items, float* out) {
  if (threadIdx.x == 0)
    while (flag[0] == 0) {
    }
  __syncthreads();
  const int at = blockIdx.x * kThreads + threadIdx.x;
  out[at] = 2.0f * items[at];
}

__global__ void produce(int* flag, float* items) {
  items[blockIdx.x * kThreads + threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(flag, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kBlocks = 60;
  auto* flag = zeros<int>(1);
  auto *items = zeros<float>(kBlocks * kThreads), *out = zeros<float>(kBlocks * kThreads);
  load(consume<const int*>);
  load(consume<const volatile int*>);
  load(produce);
  const cudaStream_t consumer = stream_of_its_own(), producer = stream_of_its_own();
  if (fixed)
    consume<const volatile int*><<<kBlocks, kThreads, 0, consumer>>>(flag, items, out);
  else
    consume<const int*><<<kBlocks, kThreads, 0, consumer>>>(flag, items, out);
  usleep(100000);  // the items are read from a file
  produce<<<kBlocks, kThreads, 0, producer>>>(flag, items);
  CHECK(cudaGetLastError());
  return finish();
}
