// 40 streams of two kernels each, issued stream by stream. The first kernel of a stream waits for
// that of the next stream. There are eight hardware queues.
#include "begin.cuh"

constexpr int kStreams = 40;

__global__ void receive(int member, int members, int* ready) {
  if (threadIdx.x != 0) return;
  volatile int* flags = ready;
  if (member + 1 < members)
    while (flags[member + 1] == 0) __nanosleep(100);
  flags[member] = 1;
}

__global__ void integrate(int member, float* state) { state[member * 32 + threadIdx.x] += 1; }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* ready = zeros<int>(kStreams);
  auto* state = zeros<float>(kStreams * 32);
  load(receive);
  load(integrate);
  cudaStream_t streams[kStreams];
  for (auto& stream : streams) stream = stream_of_its_own();
  if (fixed) {
    for (int i = kStreams - 1; i >= 0; --i) {
      receive<<<1, 32, 0, streams[i]>>>(i, kStreams, ready);
      integrate<<<1, 32, 0, streams[i]>>>(i, state);
    }
  } else {
    for (int i = 0; i < kStreams; ++i) {
      receive<<<1, 32, 0, streams[i]>>>(i, kStreams, ready);
      integrate<<<1, 32, 0, streams[i]>>>(i, state);
    }
  }
  CHECK(cudaGetLastError());
  return finish();
}
