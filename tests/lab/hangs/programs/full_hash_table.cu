// A hash table with open addressing is full before all keys are in: the last ones probe for ever.
#include "begin.cuh"

__global__ void insert(unsigned* table, unsigned slots, unsigned keys) {
  const unsigned key = blockIdx.x * blockDim.x + threadIdx.x + 1;
  if (key > keys) return;
  unsigned slot = key * 2654435761u % slots;
  for (;;) {
    const unsigned before = atomicCAS(&table[slot], 0u, key);
    if (before == 0 || before == key) return;
    slot = (slot + 1) % slots;
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const unsigned slots = fixed ? 8192 : 4096, keys = 4200;
  auto* table = zeros<unsigned>(slots);
  insert<<<(keys + 127) / 128, 128>>>(table, slots, keys);
  CHECK(cudaGetLastError());
  return finish();
}
