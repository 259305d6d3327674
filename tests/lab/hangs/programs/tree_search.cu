// A search tree of 1,023 nodes of 1.5 seconds each. Blocks take nodes from a list that other blocks
// still write, and leave when no node is open.
#include "begin.cuh"

struct Open {
  int taken, listed, unfinished;
  int depth[4096];
};

__global__ void search(Open* open, int deepest, long work, float* found) {
  float x = threadIdx.x;
  volatile Open* seen = open;
  while (true) {
    const int ticket = atomicAdd(&open->taken, 1);
    while (seen->depth[ticket] == 0)
      if (seen->unfinished == 0) return;
    const int depth = seen->depth[ticket];
    for (long i = 0; i < work; ++i) x = fmaf(x, 0.999f, 0.25f);
    found[blockIdx.x] += x;
    if (depth < deepest) {
      atomicAdd(&open->unfinished, 2);
      const int at = atomicAdd(&open->listed, 2);
      __threadfence();
      seen->depth[at] = depth + 1;
      seen->depth[at + 1] = depth + 1;
    }
    __threadfence();
    atomicSub(&open->unfinished, 1);
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* open = zeros<Open>(1);
  auto* found = zeros<float>(132);
  Open start{};
  start.listed = start.unfinished = start.depth[0] = 1;
  CHECK(cudaMemcpy(open, &start, sizeof start, cudaMemcpyHostToDevice));
  load(search);
  search<<<132, 1, 0, stream_of_its_own()>>>(open, 10, 700'000'000, found);
  CHECK(cudaGetLastError());
  return finish();
}
