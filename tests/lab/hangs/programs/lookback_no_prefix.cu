// A scan with decoupled look-back: a tile that sees an aggregate goes on to the tile before. The
// first tile has nothing to look at and publishes its aggregate, not a prefix, so no look ends.
#include "begin.cuh"

constexpr int kTiles = 100, kThreads = 256;
enum State { kNothing, kAggregate, kPrefix };

struct Tile {
  int state, aggregate, prefix;
};

__device__ int look_back(volatile Tile* tiles, int tile) {
  int before = 0;
  for (int at = tile - 1; true;) {
    const int state = tiles[at].state;
    if (state == kPrefix) return before + tiles[at].prefix;
    if (state == kAggregate && at > 0) before += tiles[at--].aggregate;
  }
}

__global__ void scan(const int* in, int* out, Tile* tiles, int state_of_first) {
  __shared__ int before, sum;
  const int at = blockIdx.x * kThreads + threadIdx.x;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[at]);
  __syncthreads();
  if (threadIdx.x == 0) {
    volatile Tile* mine = tiles + blockIdx.x;
    mine->aggregate = mine->prefix = sum;
    __threadfence();
    mine->state = blockIdx.x == 0 ? state_of_first : kAggregate;
    before = 0;
    if (blockIdx.x > 0) {
      before = look_back(tiles, blockIdx.x);
      mine->prefix = before + sum;
      __threadfence();
      mine->state = kPrefix;
    }
  }
  __syncthreads();
  out[at] = before + in[at];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *in = zeros<int>(kTiles * kThreads), *out = zeros<int>(kTiles * kThreads);
  auto* tiles = zeros<Tile>(kTiles);
  load(scan);
  scan<<<kTiles, kThreads>>>(in, out, tiles, fixed ? kPrefix : kAggregate);
  CHECK(cudaGetLastError());
  return finish();
}
