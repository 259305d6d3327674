// A wait for an event stands at the head of the only queue, before the launch that would end it.
#include "begin.cuh"

__global__ void poll_tokens(volatile int* tokens, int n, int* sum) {
  int all = 0;
  for (int i = 0; i < n; ++i) {
    int token;
    while ((token = tokens[i]) == 0) {
    }
    all += token;
  }
  *sum = all;
}

__global__ void report(const int* sum, int* out) { *out = 2 * *sum; }

__global__ void emit_tokens(int* tokens) { tokens[threadIdx.x] = threadIdx.x + 1; }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* tokens = zeros<int>(32);
  auto* sums = zeros<int>(2);
  // Warm up
  emit_tokens<<<1, 32>>>(tokens);
  poll_tokens<<<1, 1>>>(tokens, 32, sums);
  report<<<1, 1>>>(sums, sums + 1);
  CHECK(cudaMemset(tokens, 0, 32 * sizeof(int)));
  CHECK(cudaDeviceSynchronize());

  const auto reader = stream_of_its_own(), reporter = stream_of_its_own();
  const auto writer = stream_of_its_own();
  cudaEvent_t read;
  CHECK(cudaEventCreateWithFlags(&read, cudaEventDisableTiming));
  poll_tokens<<<1, 1, 0, reader>>>(tokens, 32, sums);
  CHECK(cudaEventRecord(read, reader));
  if (fixed) emit_tokens<<<1, 32, 0, writer>>>(tokens);
  CHECK(cudaStreamWaitEvent(reporter, read, 0));
  report<<<1, 1, 0, reporter>>>(sums, sums + 1);
  if (!fixed) emit_tokens<<<1, 32, 0, writer>>>(tokens);
  CHECK(cudaGetLastError());
  return finish();
}
