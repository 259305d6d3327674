// Threads take lists from the heap of the device, and try again if there is none. The heap has
// 8 MiB, the lists have 1 MiB, and nobody gives one back.
#include "begin.cuh"

__global__ void build(size_t bytes, int** lists) {
  int* list;
  while ((list = static_cast<int*>(malloc(bytes))) == nullptr) __nanosleep(1000);
  list[0] = blockIdx.x;
  lists[blockIdx.x] = list;
}

__global__ void release(int** lists) { free(lists[blockIdx.x]); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* lists = zeros<int*>(64);
  load(build);
  load(release);
  const auto stream = stream_of_its_own();
  build<<<64, 1, 0, stream>>>(fixed ? 16 << 10 : 1 << 20, lists);
  CHECK(cudaStreamSynchronize(stream));
  release<<<64, 1, 0, stream>>>(lists);
  CHECK(cudaGetLastError());
  return finish();
}
