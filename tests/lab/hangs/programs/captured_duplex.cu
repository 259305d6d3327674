// Two directions of an exchange, captured as two branches of a graph, in which all blocks meet.
// The first one takes nearly all registers of every SM.
#include "begin.cuh"

template <int kValues>
__device__ void swap_halves(float* buffer, int* arrived, int all) {
  float value[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) value[i] = buffer[i * 1024 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < all) __nanosleep(50);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kValues; ++i) buffer[i * 1024 + (threadIdx.x ^ 1)] = value[i] + 1;
}

__global__ void __launch_bounds__(1024) listen(float* buffer, int* arrived, int all) {
  swap_halves<44>(buffer + blockIdx.x * 44 * 1024, arrived, all);
}

__global__ void __launch_bounds__(512) speak(float* buffer, int* arrived, int all) {
  swap_halves<24>(buffer + blockIdx.x * 24 * 1024, arrived, all);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int listeners = fixed ? 66 : 132, speakers = 66;
  auto *in = zeros<float>(132 * 44 * 1024), *out = zeros<float>(66 * 24 * 1024);
  auto* arrived = zeros<int>(1);
  load(listen);
  load(speak);
  const auto first = stream_of_its_own(), second = stream_of_its_own();
  cudaEvent_t fork, join;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaEventRecord(fork, first));
  CHECK(cudaStreamWaitEvent(second, fork, 0));
  listen<<<listeners, 1024, 0, first>>>(in, arrived, listeners + speakers);
  speak<<<speakers, 512, 0, second>>>(out, arrived, listeners + speakers);
  CHECK(cudaEventRecord(join, second));
  CHECK(cudaStreamWaitEvent(first, join, 0));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(first, &graph));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, first));
  return finish();
}
