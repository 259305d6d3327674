// A graph with two branches: a host node that passes on a batch when the reader has posted it, and
// a kernel that waits for that batch in pinned memory.
#include <atomic>

#include "begin.cuh"

struct Batch {
  std::atomic<int> posted{0};
  volatile int* in_gpu = nullptr;
};

void pass_on(void* of) {
  auto* batch = static_cast<Batch*>(of);
  while (batch->posted == 0) usleep(200);
  *batch->in_gpu = batch->posted;
}

__global__ void consume(const volatile int* batch, float* sums) {
  if (threadIdx.x == 0)
    while (*batch == 0) __nanosleep(2000);
  __syncthreads();
  sums[threadIdx.x] += *batch;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* sums = zeros<float>(128);
  const volatile int* in_gpu = shared_with_host<int>(1);
  Batch batch;
  batch.in_gpu = const_cast<volatile int*>(in_gpu);
  load(consume);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t host_node, kernel_node;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaHostNodeParams passing = {pass_on, &batch};
  CHECK(cudaGraphAddHostNode(&host_node, graph, nullptr, 0, &passing));
  void* arguments[] = {&in_gpu, &sums};
  cudaKernelNodeParams consuming = {};
  consuming.func = reinterpret_cast<void*>(consume);
  consuming.gridDim = dim3(1), consuming.blockDim = dim3(128);
  consuming.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel_node, graph, nullptr, 0, &consuming));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  const auto stream = stream_of_its_own();
  CHECK(cudaGraphLaunch(exec, stream));
  if (fixed) batch.posted = 1;
  CHECK(cudaStreamSynchronize(stream));
  batch.posted = 1;  // the reader's first batch
  return finish();
}
