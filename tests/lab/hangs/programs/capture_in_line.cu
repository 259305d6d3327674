// A graph is captured from a stream and a helper stream. The helper was never forked from the
// first one by an event, so both kernels were put into one stream, and follow each other.
#include "begin.cuh"

__global__ void left_part(int* exchanged, float* x) {
  if (threadIdx.x == 0) {
    atomicAdd(exchanged, 1);
    while (atomicAdd(exchanged, 0) < 2) __nanosleep(100);
  }
  __syncthreads();
  x[threadIdx.x] += 1;
}

__global__ void right_part(int* exchanged, float* x) {
  if (threadIdx.x == 0) {
    atomicAdd(exchanged, 1);
    while (atomicAdd(exchanged, 0) < 2) __nanosleep(100);
  }
  __syncthreads();
  x[64 + threadIdx.x] += 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* exchanged = zeros<int>(1);
  auto* x = zeros<float>(128);
  load(left_part);
  load(right_part);
  const auto stream = stream_of_its_own(), helper = stream_of_its_own();
  cudaEvent_t forked, joined;
  CHECK(cudaEventCreate(&forked));
  CHECK(cudaEventCreate(&joined));
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  if (fixed) {
    CHECK(cudaEventRecord(forked, stream));
    CHECK(cudaStreamWaitEvent(helper, forked, 0));
  }
  left_part<<<1, 64, 0, stream>>>(exchanged, x);
  right_part<<<1, 64, 0, fixed ? helper : stream>>>(exchanged, x);
  if (fixed) {
    CHECK(cudaEventRecord(joined, helper));
    CHECK(cudaStreamWaitEvent(stream, joined, 0));
  }
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  return finish();
}
