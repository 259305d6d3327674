// A pipeline of six stages in six streams over two hardware queues; the source is launched last.
#include "begin.cuh"

constexpr int kStages = 6;

__global__ void stage(volatile int* steps, int number, float* data) {
  if (threadIdx.x == 0) {
    while (steps[number] == 0) {
    }
    __threadfence();
    steps[number + 1] = 1;
  }
  __syncthreads();
  data[threadIdx.x] += number;
}

__global__ void checksum(const float* data, float* sum) { atomicAdd(sum, data[threadIdx.x]); }

__global__ void source(int* steps) { atomicExch(&steps[0], 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* steps = zeros<int>(kStages + 1);
  auto* data = zeros<float>(kStages * 256);
  auto* sums = zeros<float>(kStages);
  load(stage);
  load(checksum);
  load(source);
  cudaStream_t streams[kStages + 1];
  for (auto& stream : streams) stream = stream_of_its_own();
  if (fixed) source<<<1, 1, 0, streams[kStages]>>>(steps);
  for (int i = 0; i < kStages; ++i) {
    stage<<<1, 256, 0, streams[i]>>>(steps, i, data + i * 256);
    checksum<<<1, 256, 0, streams[i]>>>(data + i * 256, sums + i);
  }
  if (!fixed) source<<<1, 1, 0, streams[kStages]>>>(steps);
  CHECK(cudaGetLastError());
  return finish();
}
