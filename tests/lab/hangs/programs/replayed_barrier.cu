// A captured kernel synchronises its blocks by a counter that starts at zero. The graph is launched
// three times, and nothing in it sets the counter back.
#include "begin.cuh"

__global__ void diffuse(float* x, int* arrived) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  x[at] += 1;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*static_cast<volatile int*>(arrived) != static_cast<int>(gridDim.x)) {
    }
  }
  __syncthreads();
  x[at] += 0.5f * x[(at + blockDim.x) % (gridDim.x * blockDim.x)];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* x = zeros<float>(32 * 128);
  auto* arrived = zeros<int>(1);
  load(diffuse);
  const auto stream = stream_of_its_own();
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  if (fixed) CHECK(cudaMemsetAsync(arrived, 0, sizeof(int), stream));
  diffuse<<<32, 128, 0, stream>>>(x, arrived);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int step = 0; step < 3; ++step) CHECK(cudaGraphLaunch(executable, stream));
  return finish();
}
