// A pair of blocks passes items on through one slot in the shared memory of the second. The second
// says that the slot is empty at an mbarrier, of which each block has one by that name.
#include <cooperative_groups.h>

#include <cstdint>

#include "begin.cuh"

__device__ uint32_t address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ void arrive(uint64_t* barrier, int rank) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
      " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(address(barrier)),
      "r"(rank)
      : "memory");
}

__device__ void wait(uint64_t* barrier, int parity) {
  uint32_t passed = 0;
  while (passed == 0)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
        " selp.u32 %0, 1, 0, p; }"
        : "=r"(passed)
        : "r"(address(barrier)), "r"(parity)
        : "memory");
}

__global__ void __cluster_dims__(2) relay(int items, int empty_at, int* sums) {
  __shared__ alignas(8) uint64_t full, empty;
  __shared__ int slot;
  const auto cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0)
    for (auto* each : {&full, &empty})
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(each)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  cluster.sync();
  if (threadIdx.x == 0 && cluster.block_rank() == 0) {
    for (int item = 0; item < items; ++item) {
      if (item > 0) wait(&empty, (item - 1) % 2);
      *cluster.map_shared_rank(&slot, 1) = item;
      arrive(&full, 1);
    }
  } else if (threadIdx.x == 0) {
    int sum = 0;
    for (int item = 0; item < items; ++item) {
      wait(&full, item % 2);
      sum += *static_cast<volatile int*>(&slot);
      arrive(&empty, empty_at);
    }
    sums[blockIdx.x / 2] = sum;
  }
  cluster.sync();
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* sums = zeros<int>(8);
  load(relay);
  relay<<<16, 64>>>(20, fixed ? 0 : 1, sums);
  CHECK(cudaGetLastError());
  return finish();
}
