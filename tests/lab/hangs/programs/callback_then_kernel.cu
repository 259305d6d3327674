// One connection. A kernel waits for a kernel of another stream. Behind the first one its own
// stream has a host function and a kernel after it, which come before the other stream's kernel.
#include "begin.cuh"

__global__ void gather(const volatile int* epoch, float* rows) {
  if (threadIdx.x == 0)
    while (*epoch < 1) __nanosleep(200);
  __syncthreads();
  rows[threadIdx.x] += 1;
}

__global__ void normalise(float* rows) { rows[threadIdx.x] *= 0.5f; }

__global__ void scatter(float* rows, int* epoch) {
  rows[64 + threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(epoch, 1);
}

void count_batch(void* batches) { ++*static_cast<int*>(batches); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* rows = zeros<float>(128);
  auto* epoch = zeros<int>(1);
  load(gather);
  load(normalise);
  load(scatter);
  const auto in = stream_of_its_own(), out = stream_of_its_own();
  int batches = 0;
  if (fixed) scatter<<<1, 64, 0, out>>>(rows, epoch);
  gather<<<1, 64, 0, in>>>(epoch, rows);
  CHECK(cudaLaunchHostFunc(in, count_batch, &batches));
  normalise<<<1, 64, 0, in>>>(rows);
  if (!fixed) scatter<<<1, 64, 0, out>>>(rows, epoch);
  CHECK(cudaGetLastError());
  return finish();
}
