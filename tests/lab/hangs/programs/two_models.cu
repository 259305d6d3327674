// Speculative decoding: the large model stays on the GPU and verifies what the small one drafts.
// Both were tuned alone; two blocks of the one and a block of the other are too many for an SM.
#include "begin.cuh"

__global__ void __launch_bounds__(768, 2) verify(const volatile int* drafted, int wanted, int* ok) {
  if (threadIdx.x == 0)
    while (*drafted < wanted) __nanosleep(100);
  __syncthreads();
  ok[blockIdx.x * 768 + threadIdx.x] = 1;
}

__global__ void draft(int* drafted, int* tokens) {
  tokens[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(drafted, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kDrafts = 20;
  auto *drafted = zeros<int>(1), *tokens = zeros<int>(kDrafts * 640), *ok = zeros<int>(264 * 768);
  load(verify);
  load(draft);
  int least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t small;
  CHECK(cudaStreamCreateWithPriority(&small, cudaStreamNonBlocking, greatest));
  verify<<<264, 768, 0, stream_of_its_own()>>>(drafted, kDrafts, ok);
  usleep(50000);  // the prompt is tokenised
  draft<<<kDrafts, fixed ? 512 : 640, 0, small>>>(drafted, tokens);
  CHECK(cudaGetLastError());
  return finish();
}
