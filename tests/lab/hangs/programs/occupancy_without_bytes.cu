// A lattice update with its own barrier takes its number of blocks from the occupancy that the
// runtime computes, which is asked with the default for the dynamic shared memory.
#include "begin.cuh"

__global__ void __launch_bounds__(256) update(float* spins, unsigned* arrived, int sweeps) {
  extern __shared__ float window[];
  for (int sweep = 1; sweep <= sweeps; ++sweep) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    window[threadIdx.x] = spins[i];
    __syncthreads();
    spins[i] = 0.9f * window[threadIdx.x] + 0.1f * window[(threadIdx.x + 1) % blockDim.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1u);
      while (*static_cast<volatile unsigned*>(arrived) < sweep * gridDim.x) {
      }
    }
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int bytes = 50 << 10;
  allow(update, bytes);
  int sms, per_sm;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, update, 256, fixed ? bytes : 0));
  auto* spins = zeros<float>(size_t(sms) * per_sm * 256);
  auto* arrived = zeros<unsigned>(1);
  update<<<sms * per_sm, 256, bytes>>>(spins, arrived, 20);
  CHECK(cudaGetLastError());
  return finish();
}
