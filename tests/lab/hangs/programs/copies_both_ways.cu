// Half a gigabyte goes to the GPU and back, again and again, on two streams; the host runs ahead.
#include "begin.cuh"

int main(int argc, char **argv) {
  begin(argc, argv);
  constexpr size_t kBytes = size_t{512} << 20;
  auto *up = shared_with_host<char>(kBytes), *down = shared_with_host<char>(kBytes);
  auto *first = zeros<char>(kBytes), *second = zeros<char>(kBytes);
  const cudaStream_t ups = stream_of_its_own(), downs = stream_of_its_own();
  for (int round = 0; round < 800; ++round) {
    CHECK(cudaMemcpyAsync(first, up, kBytes, cudaMemcpyHostToDevice, ups));
    CHECK(cudaMemcpyAsync(down, second, kBytes, cudaMemcpyDeviceToHost, downs));
  }
  return finish();
}
