// Two captured graphs in two streams: the first one waits for a word of the second. A small kernel
// without a stream is launched between them.
#include "begin.cuh"

__global__ void await_word(const volatile int* word, float* x) {
  while (*word == 0) __nanosleep(100);
  x[threadIdx.x] = 1;
}

__global__ void prepare(float* y) { y[threadIdx.x] += 1; }

__global__ void write_word(int* word) { atomicExch(word, 1); }

__global__ void count_step(int* steps) { ++*steps; }

cudaGraphExec_t end_capture(cudaStream_t stream) {
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphUpload(executable, stream));
  CHECK(cudaDeviceSynchronize());
  return executable;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *word = zeros<int>(1), *steps = zeros<int>(1);
  auto *x = zeros<float>(32), *y = zeros<float>(32);
  load(await_word);
  load(prepare);
  load(write_word);
  load(count_step);
  const unsigned flags = fixed ? cudaStreamNonBlocking : cudaStreamDefault;
  cudaStream_t first, second;
  CHECK(cudaStreamCreateWithFlags(&first, flags));
  CHECK(cudaStreamCreateWithFlags(&second, flags));
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  await_word<<<1, 32, 0, first>>>(word, x);
  prepare<<<1, 32, 0, first>>>(x);
  const auto waits = end_capture(first);
  CHECK(cudaStreamBeginCapture(second, cudaStreamCaptureModeThreadLocal));
  prepare<<<1, 32, 0, second>>>(y);
  write_word<<<1, 1, 0, second>>>(word);
  const auto writes = end_capture(second);
  CHECK(cudaGraphLaunch(waits, first));
  count_step<<<1, 1>>>(steps);
  CHECK(cudaGraphLaunch(writes, second));
  CHECK(cudaGetLastError());
  return finish();
}
