// Four stages have a stream each: a kernel that waits for the ring, and one that rotates it. What
// fills the ring has a fifth stream, and there are two connections.
#include "begin.cuh"

constexpr int kStages = 4, kThreads = 64;

__global__ void await_slot(const volatile int* ring, int stage) {
  if (threadIdx.x == 0)
    while (ring[stage] == 0) __nanosleep(100);
  __syncthreads();
}

__global__ void rotate(int* ring, int stage, float* data) {
  data[stage * kThreads + threadIdx.x] += stage;
  if (threadIdx.x == 0) ring[stage] = 0;
}

__global__ void fill(int* ring) {
  if (threadIdx.x < kStages) atomicExch(ring + threadIdx.x, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* ring = zeros<int>(kStages);
  auto* data = zeros<float>(kStages * kThreads);
  load(await_slot);
  load(rotate);
  load(fill);
  cudaStream_t streams[kStages + 1];
  for (auto& stream : streams) stream = stream_of_its_own();
  if (fixed) fill<<<1, 32, 0, streams[kStages]>>>(ring);
  for (int stage = 0; stage < kStages; ++stage) {
    await_slot<<<1, kThreads, 0, streams[stage]>>>(ring, stage);
    rotate<<<1, kThreads, 0, streams[stage]>>>(ring, stage, data);
  }
  if (!fixed) fill<<<1, 32, 0, streams[kStages]>>>(ring);
  CHECK(cudaGetLastError());
  return finish();
}
