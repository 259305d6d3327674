// A simulation kernel waits for boundary values, and a snapshot of its field is copied within the
// GPU behind it. One connection, and the boundary values come last.
#include "begin.cuh"

constexpr size_t kField = 1 << 24;

__global__ void advance(const volatile int* boundary, float* field) {
  if (threadIdx.x == 0)
    while (*boundary == 0) {
    }
  __syncthreads();
  field[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

__global__ void inject(int* boundary) { atomicExch(boundary, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* boundary = zeros<int>(1);
  auto *field = zeros<float>(kField), *snapshot = zeros<float>(kField);
  load(advance);
  load(inject);
  const auto simulation = stream_of_its_own(), input = stream_of_its_own();
  const auto save = [&] {
    CHECK(cudaMemcpyAsync(snapshot, field, kField * sizeof(float), cudaMemcpyDeviceToDevice,
                          simulation));
  };
  save();
  CHECK(cudaDeviceSynchronize());
  if (fixed) inject<<<1, 1, 0, input>>>(boundary);
  advance<<<16, 256, 0, simulation>>>(boundary, field);
  save();
  if (!fixed) inject<<<1, 1, 0, input>>>(boundary);
  CHECK(cudaGetLastError());
  return finish();
}
