// A graph walks a tree through a queue of tasks. Tasks that find it full are lost, but waited for.
#include "begin.cuh"

struct Queue {
  int pushed, taken, pending;
  int ready[1 << 16];
  int levels[1 << 16];
};

__device__ void push(Queue* queue, int level, int capacity) {
  const int slot = atomicAdd(&queue->pushed, 1);
  if (slot >= capacity) return;
  queue->levels[slot] = level;
  __threadfence();
  atomicExch(&queue->ready[slot], 1);
}

__global__ void walk(Queue* queue, int deepest, int capacity, unsigned* visited) {
  if (threadIdx.x != 0) return;
  while (atomicAdd(&queue->pending, 0) > 0) {
    const int slot = atomicAdd(&queue->taken, 1);
    if (slot >= capacity) {
      while (*static_cast<volatile int*>(&queue->pending) > 0) __nanosleep(1000);
      return;
    }
    while (atomicAdd(&queue->ready[slot], 0) == 0) {
      if (atomicAdd(&queue->pending, 0) <= 0) return;
      __nanosleep(100);
    }
    __threadfence();
    const int level = *static_cast<volatile int*>(&queue->levels[slot]);
    atomicAdd(visited, 1);
    if (level < deepest) {
      atomicAdd(&queue->pending, 2);
      push(queue, level + 1, capacity);
      push(queue, level + 1, capacity);
    }
    atomicSub(&queue->pending, 1);
  }
}

__global__ void plant(Queue* queue) {
  queue->pending = 1;
  push(queue, 0, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* queue = zeros<Queue>(1);
  auto* visited = zeros<unsigned>(1);
  load(plant);
  load(walk);
  const auto stream = stream_of_its_own();
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  plant<<<1, 1, 0, stream>>>(queue);
  walk<<<64, 64, 0, stream>>>(queue, 12, fixed ? 1 << 16 : 4096, visited);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  return finish();
}
