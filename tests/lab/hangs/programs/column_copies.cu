// Columns of a matrix are copied one by one, four bytes per row, for eight seconds.
#include <chrono>

#include "begin.cuh"

int main(int argc, char** argv) {
  begin(argc, argv);
  const size_t rows = 1 << 19, columns = 64, pitch = columns * sizeof(float);
  float *host, *device;
  CHECK(cudaMallocHost(&host, rows * pitch));
  std::memset(host, 0, rows * pitch);
  CHECK(cudaMalloc(&device, rows * pitch));
  const auto stream = stream_of_its_own();
  const auto began = std::chrono::steady_clock::now();
  for (size_t column = 0;; ++column) {
    // Several at a time are under way
    for (int i = 0; i < 8; ++i) {
      const size_t at = (column * 8 + i) % columns;
      CHECK(cudaMemcpy2DAsync(device + at, pitch, host + at, pitch, sizeof(float), rows,
                              cudaMemcpyHostToDevice, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    if (std::chrono::steady_clock::now() - began > std::chrono::seconds(8)) break;
  }
  return finish();
}
