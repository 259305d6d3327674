// Workers take patches from a ring under a lock, and put four finer ones in for each, down to a
// depth. A worker that finds no place in the ring tries again until there is one.
#include "begin.cuh"

struct Ring {
  int lock, head, tail, pending;
  int patches[1 << 14];
};

__device__ void take(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) __nanosleep(100);
  __threadfence();
}

__device__ void release(int* lock) {
  __threadfence();
  atomicExch(lock, 0);
}

__device__ bool push(Ring* ring, int capacity, int depth) {
  take(&ring->lock);
  volatile Ring* at = ring;
  const bool fits = at->tail - at->head < capacity;
  if (fits) {
    at->patches[at->tail % capacity] = depth;
    at->tail = at->tail + 1;
    atomicAdd(&ring->pending, 1);
  }
  release(&ring->lock);
  return fits;
}

__device__ bool pop(Ring* ring, int capacity, int* depth) {
  take(&ring->lock);
  volatile Ring* at = ring;
  const bool any = at->tail > at->head;
  if (any) {
    *depth = at->patches[at->head % capacity];
    at->head = at->head + 1;
  }
  release(&ring->lock);
  return any;
}

__global__ void refine(Ring* ring, int capacity) {
  while (true) {
    int own;
    if (pop(ring, capacity, &own)) {
      for (int child = 0; own > 0 && child < 4; ++child)
        while (!push(ring, capacity, own - 1)) __nanosleep(1000);
      atomicSub(&ring->pending, 1);
    } else if (atomicAdd(&ring->pending, 0) == 0) {
      return;
    }
    __nanosleep(200);
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* ring = zeros<Ring>(1);
  static Ring seeds = {0, 0, 48, 48, {}};
  for (int i = 0; i < 48; ++i) seeds.patches[i] = 3;
  CHECK(cudaMemcpy(ring, &seeds, sizeof(Ring), cudaMemcpyHostToDevice));
  load(refine);
  refine<<<24, 1>>>(ring, fixed ? 1 << 14 : 64);
  CHECK(cudaGetLastError());
  return finish();
}
