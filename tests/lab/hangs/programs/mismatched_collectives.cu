// Two ranks are host threads that share the GPU. A collective is a kernel of each rank, and waits
// for that of the other. After each collective the rank waits for its stream.
#include <thread>

#include "begin.cuh"

enum Collective { kAllReduce, kAllGather };

__global__ void collective(int* arrived, float* own, const float* other) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 2) __nanosleep(500);
  }
  __syncthreads();
  own[threadIdx.x] += other[threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* arrived = zeros<int>(2);
  auto* values = zeros<float>(2 * 256);
  load(collective);
  const Collective orders[2][2] = {{kAllReduce, kAllGather}, {kAllGather, kAllReduce}};
  const auto run = [=](int rank) {
    const auto stream = stream_of_its_own();
    for (const auto which : orders[fixed ? 0 : rank]) {
      collective<<<1, 256, 0, stream>>>(arrived + which, values + rank * 256,
                                        values + 512 - (rank + 1) * 256);
      CHECK(cudaGetLastError());
      CHECK(cudaStreamSynchronize(stream));
    }
  };
  std::thread first(run, 0), second(run, 1);
  first.join();
  second.join();
  return finish();
}
