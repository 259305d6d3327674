// With the driver's interface: a kernel in stream 0 waits for an urgent one, which is in a stream
// of the highest priority, but one that waits for stream 0.
#include "begin.cuh"

__global__ void background(const volatile int* urgent_done, float* x) {
  if (threadIdx.x == 0)
    while (*urgent_done == 0) __nanosleep(100);
  __syncthreads();
  x[threadIdx.x] += 1;
}

__global__ void urgent(int* urgent_done) {
  if (threadIdx.x == 0) atomicExch(urgent_done, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* urgent_done = zeros<int>(1);
  auto* x = zeros<float>(64);
  load(background);
  load(urgent);
  cudaFunction_t slow, fast;
  CHECK(cudaGetFuncBySymbol(&slow, reinterpret_cast<const void*>(background)));
  CHECK(cudaGetFuncBySymbol(&fast, reinterpret_cast<const void*>(urgent)));
  int least, greatest;
  CHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
  CUstream high;
  CHECK(cuStreamCreateWithPriority(&high, fixed ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT,
                                   greatest));
  void* of_slow[] = {&urgent_done, &x};
  void* of_fast[] = {&urgent_done};
  CHECK(cuLaunchKernel(slow, 2, 1, 1, 64, 1, 1, 0, nullptr, of_slow, nullptr));
  CHECK(cuLaunchKernel(fast, 1, 1, 1, 32, 1, 1, 0, high, of_fast, nullptr));
  CHECK(cuStreamSynchronize(high));
  return finish();
}
