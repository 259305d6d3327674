// A chained scan: each tile waits in a loop for the one before, and adds much work of its own to
// what it got. Tile after tile ends.
#include "begin.cuh"

__global__ void chained(const float* in, float* out, volatile float* carries, volatile int* done,
                        int work) {
  __shared__ float carry;
  const int tile = blockIdx.x;
  if (threadIdx.x == 0) {
    if (tile > 0)
      while (done[tile - 1] == 0) __nanosleep(200);
    __threadfence();
    float mine = tile > 0 ? carries[tile - 1] : 0.0f;
    for (int step = 0; step < work; ++step) mine = mine * 0.999999f + in[step % 128];
    carries[tile] = mine;
    __threadfence();
    done[tile] = 1;
    carry = mine;
  }
  __syncthreads();
  out[tile * 128 + threadIdx.x] = carry + in[threadIdx.x];
}

int main(int argc, char** argv) {
  begin(argc, argv);
  constexpr int kTiles = 3000;
  auto *in = zeros<float>(128), *out = zeros<float>(kTiles * 128), *carries = zeros<float>(kTiles);
  auto* done = zeros<int>(kTiles);
  chained<<<kTiles, 128>>>(in, out, carries, done, 1500000);
  CHECK(cudaGetLastError());
  return finish();
}
