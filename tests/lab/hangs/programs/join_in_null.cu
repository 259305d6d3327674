// The default stream joins a non-blocking stream by an event, and reduces what that computes. The
// kernel there waits for one in a stream of cudaStreamCreate that is launched afterwards.
#include "begin.cuh"

__global__ void accumulate(const volatile int* sampled, float* sums) {
  if (threadIdx.x == 0)
    while (*sampled == 0) __nanosleep(100);
  __syncthreads();
  sums[threadIdx.x] += 1;
}

__global__ void reduce(const float* sums, float* total) { atomicAdd(total, sums[threadIdx.x]); }

__global__ void sample(int* sampled) { atomicExch(sampled, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* sampled = zeros<int>(1);
  auto *sums = zeros<float>(128), *total = zeros<float>(1);
  load(accumulate);
  load(reduce);
  load(sample);
  const auto accumulating = stream_of_its_own();
  cudaStream_t sampling;
  CHECK(cudaStreamCreateWithFlags(&sampling, fixed ? cudaStreamNonBlocking : cudaStreamDefault));
  cudaEvent_t accumulated;
  CHECK(cudaEventCreateWithFlags(&accumulated, cudaEventDisableTiming));
  accumulate<<<1, 128, 0, accumulating>>>(sampled, sums);
  CHECK(cudaEventRecord(accumulated, accumulating));
  CHECK(cudaStreamWaitEvent(nullptr, accumulated, 0));
  reduce<<<1, 128>>>(sums, total);
  sample<<<1, 1, 0, sampling>>>(sampled);
  CHECK(cudaGetLastError());
  return finish();
}
