// Short kernels one after the other for about 30 s, in one stream, and as graphs in another.
#include <ctime>

#include "begin.cuh"

__global__ void step(float* x, int turns) {
  float value = x[threadIdx.x];
  for (int i = 0; i < turns; ++i) value = fmaf(value, 0.999f, 0.001f);
  x[threadIdx.x] = value;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* x = zeros<float>(512);
  const cudaStream_t streams[] = {stream_of_its_own(), stream_of_its_own()};
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  load(step);
  CHECK(cudaStreamBeginCapture(streams[1], cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 8; ++i) step<<<1, 256, 0, streams[1]>>>(x + 256, 200000);
  CHECK(cudaStreamEndCapture(streams[1], &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (const auto until = time(nullptr) + 30; time(nullptr) < until;) {
    CHECK(cudaGraphLaunch(executable, streams[1]));
    for (int i = 0; i < 8; ++i) step<<<1, 256, 0, streams[0]>>>(x, 200000);
    for (const auto stream : streams) CHECK(cudaStreamSynchronize(stream));
  }
  return finish();
}
