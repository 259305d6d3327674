// An event recorded in the default stream: it waits for the kernel that waits for what follows it.
#include "begin.cuh"

__global__ void merge(const volatile int* sorted, int runs, int* out) {
  for (int run = 0; run < runs; ++run) {
    while (!sorted[run]) {
    }
  }
  *out = runs;
}

__global__ void sort_run(int* sorted) {
  if (threadIdx.x == 0) atomicExch(&sorted[blockIdx.x], 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* sorted = zeros<int>(8);
  auto* out = zeros<int>(1);
  load(merge);
  load(sort_run);
  cudaStream_t merging;
  CHECK(cudaStreamCreateWithFlags(&merging, fixed ? cudaStreamNonBlocking : cudaStreamDefault));
  const auto sorting = stream_of_its_own();
  cudaEvent_t uploaded;
  CHECK(cudaEventCreate(&uploaded));
  merge<<<1, 1, 0, merging>>>(sorted, 8, out);
  CHECK(cudaEventRecord(uploaded));
  CHECK(cudaStreamWaitEvent(sorting, uploaded));
  sort_run<<<8, 32, 0, sorting>>>(sorted);
  CHECK(cudaGetLastError());
  return finish();
}
