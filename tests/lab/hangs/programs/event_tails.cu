// Twelve workers wait by an event for a planner, which waits for the statistics of yet another
// stream. Four connections: the workers are at the head of each.
#include "begin.cuh"

__global__ void plan(const volatile int* counted, int* schedule) {
  while (*counted == 0) {
  }
  schedule[0] = 1;
}

__global__ void work(const int* schedule, float* out) { out[threadIdx.x] = schedule[0]; }

__global__ void count(int* counted) { atomicExch(counted, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *counted = zeros<int>(1), *schedule = zeros<int>(1);
  auto* out = zeros<float>(12 * 64);
  load(plan);
  load(work);
  load(count);
  const auto planner = stream_of_its_own();
  cudaStream_t workers[12];
  for (auto& worker : workers) worker = stream_of_its_own();
  const auto statistics = stream_of_its_own();
  cudaEvent_t planned;
  CHECK(cudaEventCreateWithFlags(&planned, cudaEventDisableTiming));

  if (fixed) count<<<1, 1, 0, statistics>>>(counted);
  plan<<<1, 1, 0, planner>>>(counted, schedule);
  CHECK(cudaEventRecord(planned, planner));
  for (int i = 0; i < 12; ++i) {
    CHECK(cudaStreamWaitEvent(workers[i], planned, 0));
    work<<<1, 64, 0, workers[i]>>>(schedule, out + 64 * i);
  }
  if (!fixed) count<<<1, 1, 0, statistics>>>(counted);
  CHECK(cudaGetLastError());
  return finish();
}
