// A report on a second stream waits for the event behind a kernel that waits for its input. The
// input comes on a third stream; it is issued behind that wait, and there is one connection.
#include "begin.cuh"

__global__ void simulate(const volatile int* input, float* state) {
  if (threadIdx.x == 0)
    while (*input == 0) __nanosleep(100);
  __syncthreads();
  state[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

__global__ void report(const float* state, float* mean) { atomicAdd(mean, state[threadIdx.x]); }

__global__ void deliver(int* input) {
  if (threadIdx.x == 0) atomicExch(input, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* input = zeros<int>(1);
  auto *state = zeros<float>(8 * 256), *mean = zeros<float>(1);
  load(simulate);
  load(report);
  load(deliver);
  const cudaStream_t work = stream_of_its_own(), reports = stream_of_its_own();
  const cudaStream_t inputs = stream_of_its_own();
  cudaEvent_t stepped;
  CHECK(cudaEventCreateWithFlags(&stepped, cudaEventDisableTiming));
  if (fixed) deliver<<<1, 32, 0, inputs>>>(input);
  simulate<<<8, 256, 0, work>>>(input, state);
  CHECK(cudaEventRecord(stepped, work));
  CHECK(cudaStreamWaitEvent(reports, stepped, 0));
  report<<<1, 256, 0, reports>>>(state, mean);
  if (!fixed) deliver<<<1, 32, 0, inputs>>>(input);
  CHECK(cudaGetLastError());
  return finish();
}
