// A thousand copies of 2 GiB from the host, issued at once, and a synchronisation behind them.
#include "begin.cuh"

__global__ void scale(float* values) { values[blockIdx.x * 256 + threadIdx.x] *= 0.5f; }

int main(int argc, char** argv) {
  begin(argc, argv);
  const size_t bytes = 2ull << 30;
  void* from;
  float* to;
  CHECK(cudaMallocHost(&from, bytes));
  CHECK(cudaMalloc(&to, bytes));
  const auto stream = stream_of_its_own();
  scale<<<1024, 256, 0, stream>>>(to);
  for (int i = 0; i < 1000; ++i)
    CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
  scale<<<1024, 256, 0, stream>>>(to);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamSynchronize(stream));
  return finish();
}
