// Managed memory that the host and the GPU change in turn, page by page: each round moves all of it
// to the GPU by faults, and back to the host.
#include "begin.cuh"

__global__ void raise(unsigned* pages, size_t count) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    pages[i] = pages[i] * 3 + 1;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const size_t count = size_t(64) << 20;
  unsigned* pages;
  CHECK(cudaMallocManaged(&pages, count * sizeof(unsigned)));
  load(raise);
  const auto stream = stream_of_its_own();
  unsigned sum = 0;
  for (int round = 0; round < 100000; ++round) {
    for (size_t i = 0; i < count; i += 64) pages[i] ^= sum + round;
    raise<<<264, 256, 0, stream>>>(pages, count);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    sum += pages[round % count];
  }
  std::printf("%u\n", sum);
  return finish();
}
