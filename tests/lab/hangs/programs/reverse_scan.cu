// A suffix sum by decoupled look-back that gives the tiles to the blocks in the wrong order.
#include "begin.cuh"

constexpr int kShared = 120 * 1024;  // bytes: one block per SM

struct Tile {
  int sum;
  int state;  // 0: nothing, 1: the sum of the tile, 2: the sum up to its end
};

__global__ void scan_tiles(const int* in, int* out, volatile Tile* tiles, bool forward) {
  extern __shared__ int values[];
  __shared__ int before;
  const int tile = forward ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
  values[threadIdx.x] = in[tile * 256 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < 256; ++i) sum += values[i];
    before = 0;
    if (tile > 0) {
      while (tiles[tile - 1].state != 2) {
      }
      __threadfence();
      before = tiles[tile - 1].sum;
    }
    tiles[tile].sum = before + sum;
    __threadfence();
    tiles[tile].state = 2;
  }
  __syncthreads();
  out[tile * 256 + threadIdx.x] = before + values[threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int tiles = 528;
  auto* in = zeros<int>(tiles * 256);
  auto* out = zeros<int>(tiles * 256);
  auto* states = zeros<Tile>(tiles);
  allow(scan_tiles, kShared);
  scan_tiles<<<tiles, 256, kShared, stream_of_its_own()>>>(in, out, states, fixed);
  CHECK(cudaGetLastError());
  return finish();
}
