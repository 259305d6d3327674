// Clearing a buffer behind a kernel that polls holds the only queue.
#include "begin.cuh"

__global__ void gather(const int* arrivals, int expected, float* bins) {
  if (threadIdx.x == 0) {
    int seen;
    do {
      asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(arrivals) : "memory");
    } while (seen < expected);
  }
  __syncthreads();
  bins[threadIdx.x] += expected;
}

__global__ void scatter(int* arrivals) { atomicAdd(arrivals, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* arrivals = zeros<int>(1);
  auto* bins = zeros<float>(1 << 20);
  const auto one = stream_of_its_own(), two = stream_of_its_own();
  gather<<<1, 256, 0, one>>>(arrivals, 16, bins);
  if (fixed) scatter<<<16, 1, 0, two>>>(arrivals);
  CHECK(cudaMemsetAsync(bins, 0, sizeof(float) << 20, one));
  if (!fixed) scatter<<<16, 1, 0, two>>>(arrivals);
  CHECK(cudaGetLastError());
  return finish();
}
