// Persistent workers take nodes of a binary tree from a queue in global memory, work on each for
// milliseconds, and append its children. Workers wait in a loop for nodes that are not there yet.
#include "begin.cuh"

constexpr int kNodes = (1 << 19) - 1;

__global__ void expand(volatile int* nodes, int* head, int* tail, float* values, int work) {
  __shared__ int node;
  while (true) {
    if (threadIdx.x == 0) {
      const int place = atomicAdd(head, 1);
      node = -1;
      if (place < kNodes) {
        while (nodes[place] == 0) __nanosleep(500);
        node = nodes[place] - 1;
      }
    }
    __syncthreads();
    if (node < 0) return;
    float x = node;
    for (int step = 0; step < work; ++step) x = x * 0.999999f + threadIdx.x;
    atomicAdd(values + node % 1024, x);
    if (threadIdx.x < 2) {
      const int child = 2 * node + 1 + threadIdx.x;
      if (child < kNodes) nodes[atomicAdd(tail, 1)] = child + 1;
    }
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto *nodes = zeros<int>(kNodes), *head = zeros<int>(1), *tail = zeros<int>(1);
  auto* values = zeros<float>(1024);
  const int root = 1;
  CHECK(cudaMemcpy(nodes, &root, sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(tail, &root, sizeof(int), cudaMemcpyHostToDevice));
  expand<<<132, 64>>>(nodes, head, tail, values, 1500000);
  CHECK(cudaGetLastError());
  return finish();
}
