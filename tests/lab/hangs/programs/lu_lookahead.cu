// LU with look-ahead: the update of the trailing matrix keeps its tiles in registers until the next
// panel is factorised, by a kernel of one block in a second stream.
#include "begin.cuh"

constexpr int kOwn = 9;

__global__ void __launch_bounds__(256, 2)
    update(const float* rows, const float* columns, float* matrix, int depth, int* started,
           volatile int* all_started, const volatile int* factorised) {
  float tile[kOwn][kOwn] = {};
  for (int k = 0; k < depth; ++k) {
    float row[kOwn], column[kOwn];
    for (int i = 0; i < kOwn; ++i) row[i] = rows[k * 256 + threadIdx.x / 16 * kOwn + i];
    for (int i = 0; i < kOwn; ++i) column[i] = columns[k * 256 + threadIdx.x % 16 * kOwn + i];
    for (int i = 0; i < kOwn; ++i)
      for (int j = 0; j < kOwn; ++j) tile[i][j] -= row[i] * column[j];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    if (atomicAdd(started, 1) == gridDim.x - 1) *all_started = 1;
    while (*factorised == 0) __nanosleep(300);
  }
  __syncthreads();
  float* out = matrix + (blockIdx.x * kOwn * kOwn) * 256 + threadIdx.x;
  for (int i = 0; i < kOwn * kOwn; ++i) out[i * 256] += tile[i / kOwn][i % kOwn];
}

__global__ void __launch_bounds__(1024) panel(float* columns, int* factorised) {
  float own[16];
  for (int i = 0; i < 16; ++i) own[i] = columns[i * 1024 + threadIdx.x];
  for (int pivot = 0; pivot < 16; ++pivot) {
    const float scale = 1 / (1 + fabsf(own[pivot % 16]));
    for (int i = 0; i < 16; ++i) own[i] = own[i] * scale + own[(i + 1) % 16];
    __syncthreads();
  }
  for (int i = 0; i < 16; ++i) columns[i * 1024 + threadIdx.x] = own[i];
  if (threadIdx.x == 0) atomicExch(factorised, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int blocks = fixed ? 128 : 264, depth = 32;
  auto *rows = zeros<float>(depth * 256 + 256), *columns = zeros<float>(16 * 1024 + 256);
  auto* matrix = zeros<float>(size_t(264) * kOwn * kOwn * 256);
  auto *started = zeros<int>(1), *factorised = zeros<int>(1);
  auto* all_started = shared_with_host<int>(1);
  load(update);
  load(panel);
  const auto trailing = stream_of_its_own(), ahead = stream_of_its_own();
  update<<<blocks, 256, 0, trailing>>>(rows, columns, matrix, depth, started, all_started,
                                       factorised);
  CHECK(cudaGetLastError());
  while (*static_cast<volatile int*>(all_started) == 0) {
  }
  panel<<<1, 1024, 0, ahead>>>(columns, factorised);
  CHECK(cudaGetLastError());
  return finish();
}
