// A list in the host's memory is followed by one thread of the GPU, pointer by pointer.
#include "begin.cuh"

__global__ void follow(const volatile unsigned* next, unsigned at, long long hops, unsigned* end) {
  for (long long i = 0; i < hops; ++i) at = next[at];
  *end = at;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const unsigned n = 1u << 26;  // 256 MiB
  auto* next = shared_with_host<unsigned>(n);
  for (unsigned i = 0; i < n; ++i) next[i] = (i * 1664525u + 1013904223u) % n;
  auto* end = zeros<unsigned>(1);
  load(follow);
  cudaEvent_t began, ended;
  CHECK(cudaEventCreate(&began));
  CHECK(cudaEventCreate(&ended));
  follow<<<1, 1>>>(next, 1, 20000, end);  // how long is a hop?
  CHECK(cudaEventRecord(began));
  follow<<<1, 1>>>(next, 77, 50000, end);
  CHECK(cudaEventRecord(ended));
  CHECK(cudaEventSynchronize(ended));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, began, ended));
  follow<<<1, 1>>>(next, 12345, static_cast<long long>(8000 / ms * 50000), end);
  CHECK(cudaGetLastError());
  return finish();
}
