// Transfers between accounts under two locks. One block takes them in the other order.
#include "begin.cuh"

__device__ void lock(int* mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) __nanosleep(20);
  __threadfence();
}

__device__ void unlock(int* mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void transfer(int* mutexes, int* accounts, int transfers, bool ordered) {
  if (threadIdx.x != 0) return;
  int from = blockIdx.x % 2, to = 1 - from;
  for (int i = 0; i < transfers; ++i) {
    const int first = ordered ? min(from, to) : from, second = ordered ? max(from, to) : to;
    lock(&mutexes[first]);
    const long long began = clock64();
    while (clock64() - began < 20000) {  // looks the account up
    }
    lock(&mutexes[second]);
    accounts[from] -= 1;
    accounts[to] += 1;
    unlock(&mutexes[second]);
    unlock(&mutexes[first]);
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *mutexes = zeros<int>(2), *accounts = zeros<int>(2);
  transfer<<<2, 32>>>(mutexes, accounts, 100, fixed);
  CHECK(cudaGetLastError());
  return finish();
}
