// Blocks look keys up under a lock that readers share. When all have looked, each inserts its key,
// for which it turns its share of the lock into the whole of it.
#include "begin.cuh"

constexpr int kWriter = -1;

__device__ void begin_read(int* lock) {
  while (true) {
    const int readers = *static_cast<volatile int*>(lock);
    if (readers != kWriter && atomicCAS(lock, readers, readers + 1) == readers) return;
    __nanosleep(50);
  }
}

__global__ void insert_missing(int* lock, int* looked, int* size, int* table, bool give_back) {
  if (threadIdx.x != 0) return;
  begin_read(lock);
  bool found = false;
  for (int i = 0; i < *static_cast<volatile int*>(size); ++i) found |= table[i] == blockIdx.x;
  atomicAdd(looked, 1);
  while (atomicAdd(looked, 0) < gridDim.x) __nanosleep(50);  // the phase of looking ends
  if (give_back) atomicSub(lock, 1);
  const int own = give_back ? 0 : 1;
  if (!found) {
    while (atomicCAS(lock, own, kWriter) != own) __nanosleep(100);
    table[*size] = blockIdx.x;
    *size += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *lock = zeros<int>(1), *looked = zeros<int>(1), *size = zeros<int>(1);
  auto* table = zeros<int>(128);
  load(insert_missing);
  insert_missing<<<96, 32>>>(lock, looked, size, table, fixed);
  CHECK(cudaGetLastError());
  return finish();
}
