// A graph of a fork and a join with long kernels is launched in a loop, and each launch waited for.
#include "begin.cuh"

__global__ void relax(double* values, int steps) {
  double x = values[blockIdx.x * blockDim.x + threadIdx.x];
  for (int step = 0; step < steps; ++step) x = x * 0.9999999 + 1e-7;
  values[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* values = zeros<double>(4 * 32 * 128);
  load(relax);
  const cudaStream_t main_branch = stream_of_its_own(), side_branch = stream_of_its_own();
  cudaEvent_t forked, joined;
  CHECK(cudaEventCreate(&forked));
  CHECK(cudaEventCreate(&joined));
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  constexpr int kPart = 32 * 128, kSteps = 300000000;
  CHECK(cudaStreamBeginCapture(main_branch, cudaStreamCaptureModeGlobal));
  relax<<<32, 128, 0, main_branch>>>(values, kSteps);
  CHECK(cudaEventRecord(forked, main_branch));
  CHECK(cudaStreamWaitEvent(side_branch, forked, 0));
  relax<<<32, 128, 0, main_branch>>>(values + kPart, kSteps);
  relax<<<32, 128, 0, side_branch>>>(values + 2 * kPart, kSteps / 2);
  CHECK(cudaEventRecord(joined, side_branch));
  CHECK(cudaStreamWaitEvent(main_branch, joined, 0));
  relax<<<32, 128, 0, main_branch>>>(values + 3 * kPart, kSteps);
  CHECK(cudaStreamEndCapture(main_branch, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  for (int round = 0; round < 8; ++round) {
    CHECK(cudaGraphLaunch(ready, main_branch));
    CHECK(cudaStreamSynchronize(main_branch));
  }
  return finish();
}
