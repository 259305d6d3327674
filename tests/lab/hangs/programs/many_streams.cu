// A stream for each of 64 requests, and one more that starts them all: more streams than queues.
#include "begin.cuh"

__global__ void prefill(int* started, float* state) {
  if (threadIdx.x == 0)
    while (atomicAdd(started, 0) == 0) __nanosleep(100);
  __syncthreads();
  state[threadIdx.x] = 1;
}

__global__ void decode_step(float* state) { state[threadIdx.x] *= 0.99f; }

__global__ void start_all(int* started) { atomicExch(started, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kRequests = 64;
  auto* started = zeros<int>(1);
  auto* state = zeros<float>(kRequests * 64);
  load(prefill);
  load(decode_step);
  load(start_all);
  cudaStream_t streams[kRequests];
  for (auto& stream : streams) stream = stream_of_its_own();
  const auto control = stream_of_its_own();
  if (fixed) start_all<<<1, 1, 0, control>>>(started);
  for (int i = 0; i < kRequests; ++i) {
    prefill<<<1, 64, 0, streams[i]>>>(started, state + i * 64);
    for (int step = 0; step < 4; ++step) decode_step<<<1, 64, 0, streams[i]>>>(state + i * 64);
  }
  if (!fixed) start_all<<<1, 1, 0, control>>>(started);
  CHECK(cudaGetLastError());
  return finish();
}
