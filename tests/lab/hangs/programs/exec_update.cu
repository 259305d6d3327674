// The node of a graph that has run before gets another kernel, which was never used. A kernel of
// another stream waits for what that writes.
#include "begin.cuh"

__global__ void await_total(const volatile float* total, float* out) {
  while (*total == 0) __nanosleep(100);
  *out = *total;
}

__global__ void sum(const float* x, float* total) {
  if (x[threadIdx.x] != 0) atomicAdd(total, x[threadIdx.x]);
}

__global__ void sum_with_offset(const float* x, float* total) {
  atomicAdd(total, x[threadIdx.x] + 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *x = zeros<float>(64), *total = zeros<float>(1), *out = zeros<float>(1);
  load(await_total);
  load(sum);
  if (fixed) load(sum_with_offset);
  void* arguments[] = {&x, &total};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(sum);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(64);
  kernel.kernelParams = arguments;
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  const auto summing = stream_of_its_own();
  CHECK(cudaGraphLaunch(executable, summing));
  CHECK(cudaDeviceSynchronize());
  await_total<<<1, 1, 0, stream_of_its_own()>>>(total, out);
  CHECK(cudaGetLastError());
  usleep(50000);
  kernel.func = reinterpret_cast<void*>(sum_with_offset);
  CHECK(cudaGraphExecKernelNodeSetParams(executable, node, &kernel));
  CHECK(cudaGraphLaunch(executable, summing));
  return finish();
}
