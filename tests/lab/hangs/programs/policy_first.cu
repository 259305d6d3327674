// Thrust with a policy and a stream of its own, for the first time: while a kernel counts what it
// hands over.
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include "begin.cuh"

__global__ void count_parcels(const volatile int* parcels, int wanted, int* out) {
  while (*parcels < wanted) __nanosleep(100);
  *out = *parcels;
}

struct HandOver {
  int* parcels;
  __device__ void operator()(int) const { atomicAdd(parcels, 1); }
};

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *parcels = zeros<int>(1), *out = zeros<int>(1);
  const auto counting = stream_of_its_own(), sending = stream_of_its_own();
  const auto hand_over = [&] {
    const thrust::counting_iterator<int> from(0);
    thrust::for_each(thrust::cuda::par_nosync.on(sending), from, from + 1000, HandOver{parcels});
  };
  load(count_parcels);
  if (fixed) {
    hand_over();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemset(parcels, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
  }
  count_parcels<<<1, 1, 0, counting>>>(parcels, 1000, out);
  CHECK(cudaGetLastError());
  usleep(50000);
  hand_over();
  return finish();
}
