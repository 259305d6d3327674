// A graph of 32 kernels without edges follows a kernel that polls. What that polls for comes next,
// in another stream.
#include "begin.cuh"

constexpr int kExperts = 32;

__global__ void await_tokens(const volatile int* tokens, float* x) {
  while (*tokens == 0) __nanosleep(100);
  x[threadIdx.x] = 1;
}

__global__ void expert(float* x, int number) { x[number * 64 + threadIdx.x] += number; }

__global__ void send_tokens(int* tokens) { atomicExch(tokens, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* tokens = zeros<int>(1);
  auto* x = zeros<float>(kExperts * 64);
  load(await_tokens);
  load(expert);
  load(send_tokens);
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  for (int number = 0; number < kExperts; ++number) {
    void* arguments[] = {&x, &number};
    cudaKernelNodeParams node{};
    node.func = reinterpret_cast<void*>(expert);
    node.gridDim = dim3(1);
    node.blockDim = dim3(64);
    node.kernelParams = arguments;
    cudaGraphNode_t added;
    CHECK(cudaGraphAddKernelNode(&added, graph, nullptr, 0, &node));
  }
  cudaGraphExec_t experts;
  CHECK(cudaGraphInstantiate(&experts, graph, 0));
  const auto layer = stream_of_its_own(), dispatch = stream_of_its_own();
  CHECK(cudaGraphLaunch(experts, layer));
  CHECK(cudaDeviceSynchronize());
  if (fixed) send_tokens<<<1, 1, 0, dispatch>>>(tokens);
  await_tokens<<<1, 32, 0, layer>>>(tokens, x);
  CHECK(cudaGraphLaunch(experts, layer));
  if (!fixed) send_tokens<<<1, 1, 0, dispatch>>>(tokens);
  CHECK(cudaGetLastError());
  return finish();
}
