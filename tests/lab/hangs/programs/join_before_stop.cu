// A thread of the host logs when a persistent kernel has ended, and waits for its event. The main
// thread joins that thread before it tells the kernel to stop.
#include <thread>

#include "begin.cuh"

__global__ void persist(const volatile int* stop, unsigned long long* rounds) {
  unsigned long long mine = 0;
  while (*stop == 0) ++mine;
  if (threadIdx.x == 0) atomicAdd(rounds, mine);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  volatile int* stop = shared_with_host<int>(1);
  auto* rounds = zeros<unsigned long long>(1);
  load(persist);
  const cudaStream_t stream = stream_of_its_own();
  cudaEvent_t ended;
  CHECK(cudaEventCreateWithFlags(&ended, cudaEventBlockingSync));
  persist<<<66, 32, 0, stream>>>(stop, rounds);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(ended, stream));
  std::thread logger([=] {
    CHECK(cudaEventSynchronize(ended));
    std::puts("the kernel has ended");
  });
  if (fixed) *stop = 1;
  logger.join();
  *stop = 1;
  return finish();
}
