// A bulk copy into shared memory; the barrier expects twice as many bytes as it brings.
#include "begin.cuh"

__global__ void load_and_scale(const float* in, float* out, unsigned expected) {
  __shared__ alignas(128) float tile[256];
  __shared__ alignas(8) unsigned long long full;
  const auto bar = static_cast<unsigned>(__cvta_generic_to_shared(&full));
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(bar),
                 "r"(expected)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to),
        "l"(in + blockIdx.x * 256), "r"(1024), "r"(bar)
        : "memory");
  }
  __syncthreads();
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n"
      "@p bra done;\n"
      "bra again;\n"
      "done:\n"
      "}" ::"r"(bar)
      : "memory");
  out[blockIdx.x * 256 + threadIdx.x] = 3 * tile[threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *in = zeros<float>(264 * 256), *out = zeros<float>(264 * 256);
  load_and_scale<<<264, 256>>>(in, out, fixed ? 1024 : 2048);
  CHECK(cudaGetLastError());
  return finish();
}
