// A stream writes a word into memory when its kernel has ended, for others to poll. One connection,
// and the kernel waits for one that is issued after the word.
#include "begin.cuh"

__global__ void refine(const volatile int* coarse, float* grid) {
  if (threadIdx.x == 0)
    while (*coarse == 0) __nanosleep(100);
  __syncthreads();
  grid[threadIdx.x] += 1;
}

__global__ void solve_coarse(int* coarse, float* grid) {
  grid[threadIdx.x] = 0.5f;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(coarse, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* coarse = zeros<int>(1);
  auto* done = zeros<unsigned>(1);
  auto* grid = zeros<float>(256);
  load(refine);
  load(solve_coarse);
  const auto fine = stream_of_its_own(), below = stream_of_its_own();
  if (fixed) solve_coarse<<<1, 256, 0, below>>>(coarse, grid);
  refine<<<1, 256, 0, fine>>>(coarse, grid);
  CHECK(cuStreamWriteValue32(fine, reinterpret_cast<CUdeviceptr>(done), 1, 0));
  if (!fixed) solve_coarse<<<1, 256, 0, below>>>(coarse, grid);
  CHECK(cudaGetLastError());
  return finish();
}
