// A graph is launched into the null stream, while a kernel of another stream polls its result.
#include "begin.cuh"

__global__ void poll(const volatile float* residual, int* rounds) {
  int count = 0;
  while (*residual == 0) {
    ++count;
    __nanosleep(1000);
  }
  *rounds = count;
}

__global__ void smooth(float* x) { x[threadIdx.x] += 0.5f; }

__global__ void measure(const float* x, float* residual) {
  if (threadIdx.x == 0) atomicAdd(residual, x[0]);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *x = zeros<float>(128), *residual = zeros<float>(1);
  auto* rounds = zeros<int>(1);
  load(poll);
  load(smooth);
  load(measure);
  const auto recorder = stream_of_its_own();
  cudaGraph_t graph;
  cudaGraphExec_t solver;
  CHECK(cudaStreamBeginCapture(recorder, cudaStreamCaptureModeGlobal));
  smooth<<<1, 128, 0, recorder>>>(x);
  measure<<<1, 128, 0, recorder>>>(x, residual);
  CHECK(cudaStreamEndCapture(recorder, &graph));
  CHECK(cudaGraphInstantiate(&solver, graph, 0));
  CHECK(cudaGraphUpload(solver, recorder));
  CHECK(cudaDeviceSynchronize());
  cudaStream_t watcher;
  CHECK(cudaStreamCreate(&watcher));
  poll<<<1, 1, 0, watcher>>>(residual, rounds);
  CHECK(cudaGetLastError());
  CHECK(cudaGraphLaunch(solver, fixed ? recorder : nullptr));
  return finish();
}
