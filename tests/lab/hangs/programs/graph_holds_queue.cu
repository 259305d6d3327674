// A graph of two kernels, of which the first waits for a kernel on another stream. That one is
// launched after the graph, and there is one connection. It ends: the second kernel of the graph
// waits in no hardware queue.
#include "begin.cuh"

__global__ void await_epoch(const volatile int* epoch, int wanted) {
  if (threadIdx.x == 0)
    while (*epoch < wanted) __nanosleep(100);
  __syncthreads();
}

__global__ void accumulate(float* sums) { sums[threadIdx.x] += 1; }

__global__ void next_epoch(int* epoch) {
  if (threadIdx.x == 0) atomicAdd(epoch, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* epoch = zeros<int>(1);
  auto* sums = zeros<float>(128);
  load(await_epoch);
  load(accumulate);
  load(next_epoch);
  const cudaStream_t work = stream_of_its_own(), control = stream_of_its_own();
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CHECK(cudaStreamBeginCapture(work, cudaStreamCaptureModeGlobal));
  await_epoch<<<1, 128, 0, work>>>(epoch, 2);
  accumulate<<<1, 128, 0, work>>>(sums);
  CHECK(cudaStreamEndCapture(work, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  CHECK(cudaGraphUpload(ready, work));
  next_epoch<<<1, 32, 0, control>>>(epoch);
  CHECK(cudaDeviceSynchronize());
  if (fixed) next_epoch<<<1, 32, 0, control>>>(epoch);
  CHECK(cudaGraphLaunch(ready, work));
  if (!fixed) next_epoch<<<1, 32, 0, control>>>(epoch);
  CHECK(cudaGetLastError());
  return finish();
}
