// A captured graph has a host function between two kernels, which waits until the main thread has
// written the last checkpoint. The main thread waits for the stream of the graph before it does.
#include <condition_variable>
#include <mutex>

#include "begin.cuh"

std::mutex mutex;
std::condition_variable changed;
bool written = false;

void CUDART_CB await_checkpoint(void*) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [] { return written; });
}

void write_checkpoint() {
  const std::lock_guard lock(mutex);
  written = true;
  changed.notify_all();
}

__global__ void step(float* x) { x[threadIdx.x] += 1; }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* x = zeros<float>(64);
  load(step);
  const auto stream = stream_of_its_own();
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  step<<<1, 64, 0, stream>>>(x);
  CHECK(cudaLaunchHostFunc(stream, await_checkpoint, nullptr));
  step<<<1, 64, 0, stream>>>(x);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  if (fixed) write_checkpoint();
  CHECK(cudaStreamSynchronize(stream));
  write_checkpoint();
  return finish();
}
