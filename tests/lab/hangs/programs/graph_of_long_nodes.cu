// A graph of three kernels of nearly three seconds each.
#include "begin.cuh"

__global__ void settle(float* x, long long steps) {
  float value = x[threadIdx.x];
  for (long long i = 0; i < steps; ++i) value = fmaf(value, 0.9999f, 0.001f);
  x[threadIdx.x] = value;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* x = zeros<float>(256);
  load(settle);
  const auto stream = stream_of_its_own();
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 3; ++i) settle<<<1, 256, 0, stream>>>(x, 1300000000);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  return finish();
}
