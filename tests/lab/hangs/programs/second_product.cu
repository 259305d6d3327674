// Split-K in turn: the four blocks of a tile add their parts in the order of a semaphore in the
// workspace. The workspace is cleared once, and used for two products.
#include "begin.cuh"

constexpr int kTiles = 16, kSplits = 4;

__device__ int load_acquire(const int* word) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

__device__ void store_release(int* word, int value) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

__global__ void product(const float* a, float* c, int* semaphores, int after_last) {
  const int tile = blockIdx.x, split = blockIdx.y;
  float part = 0;
  for (int k = 0; k < 64; ++k) part += a[(split * 64 + k) * 128 + threadIdx.x];
  if (threadIdx.x == 0)
    while (load_acquire(semaphores + tile) != split) {
    }
  __syncthreads();
  float* out = c + tile * 128 + threadIdx.x;
  *out = split == 0 ? part : __ldcg(out) + part;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    store_release(semaphores + tile, split + 1 < kSplits ? split + 1 : after_last);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *a = zeros<float>(kSplits * 64 * 128), *c = zeros<float>(kTiles * 128);
  auto* d = zeros<float>(kTiles * 128);
  auto* semaphores = zeros<int>(kTiles);
  load(product);
  const auto stream = stream_of_its_own();
  for (float* out : {c, d})
    product<<<dim3(kTiles, kSplits), 128, 0, stream>>>(a, out, semaphores, fixed ? 0 : kSplits);
  CHECK(cudaGetLastError());
  return finish();
}
