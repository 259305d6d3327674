// A graph with a loop in it: the body is a kernel of five milliseconds and one that decides whether
// it runs again. The graph is launched once.
#include "begin.cuh"

__global__ void iterate(long work, float* x) {
  float own = x[threadIdx.x];
  for (long i = 0; i < work; ++i) own = fmaf(own, 0.999f, 0.25f);
  x[threadIdx.x] = own;
}

__global__ void decide(int* left, cudaGraphConditionalHandle again) {
  cudaGraphSetConditional(again, --*left > 0 ? 1 : 0);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* left = zeros<int>(1);
  auto* x = zeros<float>(64);
  const int rounds = 3000;
  CHECK(cudaMemcpy(left, &rounds, sizeof rounds, cudaMemcpyHostToDevice));
  load(iterate);
  load(decide);
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle again;
  CHECK(cudaGraphConditionalHandleCreate(&again, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams loop{};
  loop.type = cudaGraphNodeTypeConditional;
  loop.conditional.handle = again;
  loop.conditional.type = cudaGraphCondTypeWhile;
  loop.conditional.size = 1;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &loop));
  const auto stream = stream_of_its_own();
  CHECK(cudaStreamBeginCaptureToGraph(stream, loop.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                      cudaStreamCaptureModeThreadLocal));
  iterate<<<1, 64, 0, stream>>>(2'500'000, x);
  decide<<<1, 1, 0, stream>>>(left, again);
  cudaGraph_t body;
  CHECK(cudaStreamEndCapture(stream, &body));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  return finish();
}
