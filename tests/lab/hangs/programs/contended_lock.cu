// A lock that all blocks want, each several times, and hold for ten milliseconds.
#include "begin.cuh"

__device__ unsigned long long nanoseconds() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void append(int* mutex, int* log, int* length, int entries) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < entries; ++i) {
    while (atomicCAS(mutex, 0, 1) != 0) __nanosleep(500);
    __threadfence();
    const auto began = nanoseconds();
    while (nanoseconds() - began < 10000000) log[*length % 1024] += 1;
    *length += 1;
    __threadfence();
    atomicExch(mutex, 0);
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto *mutex = zeros<int>(1), *log = zeros<int>(1024), *length = zeros<int>(1);
  append<<<132, 32>>>(mutex, log, length, 6);
  CHECK(cudaGetLastError());
  return finish();
}
