// Pairs of blocks are clusters. The first block of a pair copies a row into the shared memory of
// both with one bulk copy, which names the blocks by a mask; each waits at its own mbarrier.
#include <cooperative_groups.h>

#include <cstdint>

#include "begin.cuh"

constexpr int kRow = 1024;

__device__ uint32_t in_shared(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__global__ void __cluster_dims__(2) multiply(const float* rows, float* out, unsigned short blocks) {
  __shared__ alignas(128) float row[kRow];
  __shared__ alignas(8) uint64_t full;
  const auto cluster = cooperative_groups::this_cluster();
  const uint32_t barrier = in_shared(&full);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(int(sizeof(row)))
                 : "memory");
  }
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1], %2, [%3], %4;" ::"r"(in_shared(row)),
        "l"(rows + blockIdx.x / 2 * kRow), "r"(int(sizeof(row))), "r"(barrier), "h"(blocks)
        : "memory");
  uint32_t passed = 0;
  while (passed == 0)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
        : "=r"(passed)
        : "r"(barrier)
        : "memory");
  for (int i = threadIdx.x; i < kRow; i += blockDim.x) out[blockIdx.x * kRow + i] = 2 * row[i];
  cluster.sync();
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *rows = zeros<float>(32 * kRow), *out = zeros<float>(64 * kRow);
  load(multiply);
  multiply<<<64, 128>>>(rows, out, fixed ? 3 : 1);
  CHECK(cudaGetLastError());
  return finish();
}
