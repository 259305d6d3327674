// A graph with a kernel that was never used is built and launched, while another kernel waits.
#include "begin.cuh"

__global__ void wait_for_graph(const volatile int* steps, int* out) {
  while (*steps < 3) __nanosleep(300);
  *out = *steps;
}

__global__ void one_step(int* steps) { atomicAdd(steps, 1); }

cudaGraphExec_t build(int* steps) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t last{};
  for (int i = 0; i < 3; ++i) {
    void* arguments[] = {&steps};
    cudaKernelNodeParams node{};
    node.func = reinterpret_cast<void*>(one_step);
    node.gridDim = node.blockDim = dim3(1);
    node.kernelParams = arguments;
    cudaGraphNode_t added;
    CHECK(cudaGraphAddKernelNode(&added, graph, &last, i > 0, &node));
    last = added;
  }
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  return executable;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *steps = zeros<int>(1), *out = zeros<int>(1);
  load(wait_for_graph);
  const auto stream = stream_of_its_own();
  cudaGraphExec_t graph{};
  if (fixed) {
    load(one_step);
    graph = build(steps);
    CHECK(cudaGraphUpload(graph, stream));
    CHECK(cudaDeviceSynchronize());
  }
  wait_for_graph<<<1, 1, 0, stream_of_its_own()>>>(steps, out);
  CHECK(cudaGetLastError());
  if (!fixed) graph = build(steps);
  CHECK(cudaGraphLaunch(graph, stream));
  return finish();
}
