// y = a x + y for the rows of a matrix, a block for each row. The index within a row is of 16 bits,
// as rows used to have 50,000 columns; they have 70,000 now.
#include "begin.cuh"

template <class Index>
__global__ void axpy(float a, const float* x, float* y, int columns) {
  const size_t row = size_t(blockIdx.x) * columns;
  for (Index i = threadIdx.x; i < columns; i += blockDim.x) {
    const float sum = a * x[row + i] + y[row + i];
    y[row + i] = sum > 1 ? 1 : sum;
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int columns = 70000, rows = 100;
  auto *x = zeros<float>(size_t(rows) * columns), *y = zeros<float>(size_t(rows) * columns);
  const auto kernel = fixed ? axpy<int> : axpy<unsigned short>;
  const float one = 1;
  CHECK(cudaMemcpy(x, &one, sizeof(one), cudaMemcpyHostToDevice));
  load(kernel);
  kernel<<<rows, 256>>>(0.5f, x, y, columns);
  CHECK(cudaGetLastError());
  return finish();
}
