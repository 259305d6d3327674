// An mbarrier that counts on one arrival more than there are threads: the one for a copy is
// missing.
#include "begin.cuh"

__global__ void stages(const float* in, float* out, int chunks, int expected) {
  __shared__ alignas(8) unsigned long long full;
  __shared__ float buffer[128];
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&full));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(expected));
  __syncthreads();
  for (int chunk = 0; chunk < chunks; ++chunk) {
    buffer[threadIdx.x] = in[chunk * 128 + threadIdx.x];
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(at)
                 : "memory");
    unsigned done = 0;
    while (!done) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(at), "r"(chunk % 2)
          : "memory");
    }
    out[chunk * 128 + threadIdx.x] = buffer[127 - threadIdx.x];
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *in = zeros<float>(16 * 128), *out = zeros<float>(16 * 128);
  stages<<<1, 128, 0, stream_of_its_own()>>>(in, out, 16, fixed ? 128 : 129);
  CHECK(cudaGetLastError());
  return finish();
}
