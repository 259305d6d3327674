// A pass waits for a mark that the host sets with cudaMemset, which knows no stream: it goes to the
// null stream, and the stream of the pass was made with cudaStreamCreate.
#include "begin.cuh"

__global__ void second_pass(const volatile int* mark, float* rows) {
  if (threadIdx.x == 0)
    while (*mark == 0) __nanosleep(100);
  __syncthreads();
  rows[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* mark = zeros<int>(1);
  auto* rows = zeros<float>(16 * 128);
  load(second_pass);
  cudaStream_t passes;
  CHECK(cudaStreamCreate(&passes));
  const cudaStream_t marks = stream_of_its_own();
  CHECK(cudaMemsetAsync(mark, 0, sizeof(int), marks));
  CHECK(cudaDeviceSynchronize());
  second_pass<<<16, 128, 0, passes>>>(mark, rows);
  CHECK(cudaGetLastError());
  usleep(20000);  // the first pass is looked at
  if (fixed)
    CHECK(cudaMemsetAsync(mark, 1, sizeof(int), marks));
  else
    CHECK(cudaMemset(mark, 1, sizeof(int)));
  return finish();
}
