// A persistent kernel serves a queue of the host, which waits for the GPU before it says stop.
#include "begin.cuh"

struct Queue {
  int written, stop;
  float items[64];
};

__global__ void persistent(volatile Queue* queue, float* out) {
  int read = 0;
  while (true) {
    while (queue->written == read) {
      if (queue->stop) return;
      __nanosleep(500);
    }
    out[read] = queue->items[read] * 2;
    ++read;
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* queue = shared_with_host<Queue>(1);
  auto* out = zeros<float>(64);
  volatile auto* seen = queue;
  persistent<<<1, 1, 0, stream_of_its_own()>>>(queue, out);
  CHECK(cudaGetLastError());
  for (int i = 0; i < 64; ++i) {
    queue->items[i] = i;
    __sync_synchronize();
    seen->written = i + 1;
  }
  if (!fixed) CHECK(cudaDeviceSynchronize());
  seen->stop = 1;
  return finish();
}
