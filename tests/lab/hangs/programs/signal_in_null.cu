// The word that a kernel polls is written by a memory operation of the driver, in stream 0.
#include "begin.cuh"

__global__ void await_signal(const volatile unsigned* signal, float* x) {
  if (threadIdx.x == 0)
    while (*signal == 0) __nanosleep(100);
  __syncthreads();
  x[threadIdx.x] += 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* signal = zeros<unsigned>(1);
  auto* x = zeros<float>(64);
  load(await_signal);
  cudaStream_t compute;
  CHECK(cudaStreamCreate(&compute));
  const CUstream control = fixed ? stream_of_its_own() : nullptr;
  await_signal<<<1, 64, 0, compute>>>(signal, x);
  CHECK(cudaGetLastError());
  usleep(10000);
  CHECK(cuStreamWriteValue32(control, reinterpret_cast<CUdeviceptr>(signal), 1, 0));
  return finish();
}
