// One kernel streams tiles through shared memory by a cuda::pipeline of two stages, and computes
// some microseconds on each: millions of tiles.
#include <cooperative_groups.h>

#include <cuda/pipeline>

#include "begin.cuh"

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

constexpr int kTile = 256, kTiles = 1024;

__global__ void stream_tiles(const float* in, long tiles, float* out) {
  __shared__ float stage[2][kTile];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  const auto fetch = [&](long tile) {
    pipe.producer_acquire();
    cuda::memcpy_async(&stage[tile % 2][threadIdx.x], in + tile % kTiles * kTile + threadIdx.x,
                       sizeof(float), pipe);
    pipe.producer_commit();
  };
  float x = 0;
  fetch(0);
  for (long tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) fetch(tile + 1);
    pipe.consumer_wait();
    const float value = stage[tile % 2][(threadIdx.x + 1) % kTile];
    for (int i = 0; i < 500; ++i) x = fmaf(x, 0.999f, value);
    pipe.consumer_release();
  }
  out[blockIdx.x * kTile + threadIdx.x] = x;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto *in = zeros<float>(kTile * kTiles), *out = zeros<float>(132 * kTile);
  load(stream_tiles);
  stream_tiles<<<132, kTile>>>(in, 10'000'000, out);
  CHECK(cudaGetLastError());
  return finish();
}
