// Schedulers on some SMs, and workers that all register before the first task is given out.
#include "begin.cuh"

struct Board {
  int registered, go, done, finished;
};

constexpr int kScheduler = 200 * 1024, kWorker = 120 * 1024;  // bytes of shared memory

__global__ void schedule(volatile Board* board, int workers, int tasks) {
  extern __shared__ int queue[];
  if (threadIdx.x == 0) {
    queue[0] = 0;
    while (board->registered < workers) __nanosleep(64);
    board->go = 1;
    while (board->done < tasks) __nanosleep(64);
    board->finished = 1;
  }
}

__global__ void work(Board* board, int* next, int tasks, float* out) {
  extern __shared__ float scratch[];
  __shared__ int task;
  volatile Board* seen = board;
  if (threadIdx.x == 0) {
    atomicAdd(&board->registered, 1);
    while (!seen->go) {
    }
  }
  __syncthreads();
  while (true) {
    if (threadIdx.x == 0) task = atomicAdd(next, 1);
    __syncthreads();
    if (task >= tasks) return;
    scratch[threadIdx.x] = sqrtf(static_cast<float>(task + threadIdx.x));
    out[task * 256 + threadIdx.x] = scratch[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&board->done, 1);
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int workers = fixed ? 116 : 132, tasks = 2000;
  auto* board = zeros<Board>(1);
  auto* next = zeros<int>(1);
  auto* out = zeros<float>(tasks * 256);
  allow(schedule, kScheduler);
  allow(work, kWorker);
  schedule<<<16, 32, kScheduler, stream_of_its_own()>>>(board, workers, tasks);
  usleep(100000);  // the host reads the first batch
  work<<<workers, 256, kWorker, stream_of_its_own()>>>(board, next, tasks, out);
  CHECK(cudaGetLastError());
  return finish();
}
