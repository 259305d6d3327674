// All threads raise one maximum in double precision with a loop of compare and swap, over and over;
// the host looks at it after each launch, until it has been found often enough.
#include "begin.cuh"

__device__ double hashed(unsigned x) {
  x = (x ^ 61) ^ (x >> 16);
  x *= 9;
  x = (x ^ (x >> 4)) * 0x27d4eb2d;
  return (x ^ (x >> 15)) * 1e-9;
}

__global__ void raise_maximum(unsigned long long* maximum, unsigned round, int values) {
  for (int i = 0; i < values; ++i) {
    const double own = hashed((blockIdx.x * blockDim.x + threadIdx.x) * 977 + i) + round + i;
    unsigned long long seen = atomicAdd(maximum, 0ull), before;
    do {
      before = seen;
      const double larger = fmax(__longlong_as_double(before), own);
      seen = atomicCAS(maximum, before, __double_as_longlong(larger));
    } while (seen != before);
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* maximum = zeros<unsigned long long>(1);
  load(raise_maximum);
  double found = 0;
  for (unsigned round = 0; found < 1e9; ++round) {
    raise_maximum<<<264, 256>>>(maximum, round, 40);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&found, maximum, sizeof(found), cudaMemcpyDeviceToHost));
  }
  return finish();
}
