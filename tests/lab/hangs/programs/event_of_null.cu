// A timer is started with cudaEventRecord(start), which records in the null stream, behind a kernel
// on a blocking stream that waits. The stream that brings the halo waits for the timer.
#include "begin.cuh"

__global__ void interior(const volatile int* halo, float* cells) {
  if (threadIdx.x == 0)
    while (*halo == 0) __nanosleep(100);
  __syncthreads();
  cells[blockIdx.x * blockDim.x + threadIdx.x] += 0.25f;
}

__global__ void bring_halo(int* halo) {
  if (threadIdx.x == 0) atomicExch(halo, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* halo = zeros<int>(1);
  auto* cells = zeros<float>(32 * 256);
  load(interior);
  load(bring_halo);
  cudaStream_t compute;
  CHECK(cudaStreamCreate(&compute));
  const cudaStream_t exchange = stream_of_its_own();
  cudaEvent_t start;
  CHECK(cudaEventCreate(&start));
  interior<<<32, 256, 0, compute>>>(halo, cells);
  if (fixed)
    CHECK(cudaEventRecord(start, exchange));
  else
    CHECK(cudaEventRecord(start));
  CHECK(cudaStreamWaitEvent(exchange, start, 0));
  bring_halo<<<1, 32, 0, exchange>>>(halo);
  CHECK(cudaGetLastError());
  return finish();
}
