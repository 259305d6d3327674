// One warp sets a flag behind a barrier of the block, before which the other warps wait for it.
#include "begin.cuh"

__global__ void pipeline(const float* in, float* out, int chunks, bool flag_first) {
  __shared__ volatile int filled;
  __shared__ float buffer[128];
  if (threadIdx.x == 0) filled = 0;
  __syncthreads();
  for (int chunk = 1; chunk <= chunks; ++chunk) {
    if (threadIdx.x < 32) {
      for (int i = threadIdx.x; i < 128; i += 32) buffer[i] = in[(chunk - 1) * 128 + i];
      __threadfence_block();
      __syncwarp();
      if (flag_first && threadIdx.x == 0) filled = chunk;
    } else {
      while (filled < chunk) {
      }
    }
    __syncthreads();
    if (!flag_first && threadIdx.x == 0) filled = chunk;
    out[(chunk - 1) * 128 + threadIdx.x] = 2 * buffer[threadIdx.x];
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *in = zeros<float>(16 * 128), *out = zeros<float>(16 * 128);
  pipeline<<<1, 128, 0, stream_of_its_own()>>>(in, out, 16, fixed);
  CHECK(cudaGetLastError());
  return finish();
}
