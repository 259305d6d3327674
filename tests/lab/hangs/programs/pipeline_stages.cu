// Warps that copy and warps that compute, joined by a cuda::pipeline. The number of tiles is
// rounded down for the ones and up for the others.
#include <cooperative_groups.h>

#include <cuda/pipeline>

#include "begin.cuh"

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

constexpr int kTile = 128;

__global__ void smooth(const float* in, float* out, int loads, int uses) {
  __shared__ float stage[2][kTile];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  const bool copies = threadIdx.x < kTile;
  const int at = threadIdx.x % kTile;
  auto pipe = cuda::make_pipeline(
      block, &state, copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  if (copies) {
    for (int tile = 0; tile < loads; ++tile) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[tile % 2][at], in + tile * kTile + at, sizeof(float), pipe);
      pipe.producer_commit();
    }
  } else {
    for (int tile = 0; tile < uses; ++tile) {
      pipe.consumer_wait();
      out[tile * kTile + at] = 0.5f * (stage[tile % 2][at] + stage[tile % 2][(at + 1) % kTile]);
      pipe.consumer_release();
    }
  }
  block.sync();
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int n = 1000, loads = n / kTile, uses = fixed ? n / kTile : (n + kTile - 1) / kTile;
  auto *in = zeros<float>(8 * kTile), *out = zeros<float>(8 * kTile);
  load(smooth);
  smooth<<<16, 2 * kTile>>>(in, out, loads, uses);
  CHECK(cudaGetLastError());
  return finish();
}
