// A loop over 256 levels with a counter of one byte never ends.
#include "begin.cuh"

__global__ void equalise(const unsigned char* picture, int levels, unsigned* histogram) {
  const unsigned char own = picture[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned char level = 0; level < levels; ++level)
    if (own <= level) atomicAdd(&histogram[level], 1u);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* picture = zeros<unsigned char>(64 * 256);
  auto* histogram = zeros<unsigned>(256);
  load(equalise);
  equalise<<<64, 256>>>(picture, fixed ? 255 : 256, histogram);
  CHECK(cudaGetLastError());
  return finish();
}
