// A graph of two kernels without an edge, each for half a matrix, that exchange a column. Both
// together are twice what the shared memory of the GPU holds.
#include "begin.cuh"

constexpr int kShared = 120 * 1024;

__global__ void half(int side, int* columns, float* out) {
  extern __shared__ float panel[];
  panel[threadIdx.x] = side;
  __syncthreads();
  int* mine = columns + side * gridDim.x + blockIdx.x;
  const volatile int* other = columns + (1 - side) * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0) {
    atomicExch(mine, 1);
    while (*other == 0) __nanosleep(64);
  }
  __syncthreads();
  out[(side * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = panel[threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* columns = zeros<int>(264);
  auto* out = zeros<float>(264 * 128);
  allow(half, kShared);
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  for (int side = 0; side < 2; ++side) {
    void* arguments[] = {&side, &columns, &out};
    cudaKernelNodeParams node{};
    node.func = reinterpret_cast<void*>(half);
    node.gridDim = dim3(132);
    node.blockDim = dim3(128);
    node.sharedMemBytes = fixed ? 100 * 1024 : kShared;
    node.kernelParams = arguments;
    cudaGraphNode_t added;
    CHECK(cudaGraphAddKernelNode(&added, graph, nullptr, 0, &node));
  }
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream_of_its_own()));
  return finish();
}
