// A megakernel: workers take tasks in order and wait until the schedulers have released them. The
// workers were launched first, with every thread that the GPU holds.
#include "begin.cuh"

__global__ void __launch_bounds__(1024, 2)
    work(const volatile int* released, int* taken, int tasks, float* results) {
  __shared__ int task;
  while (true) {
    if (threadIdx.x == 0) {
      task = atomicAdd(taken, 1);
      if (task < tasks)
        while (*released <= task) __nanosleep(100);
    }
    __syncthreads();
    if (task >= tasks) return;
    results[task * 1024 + threadIdx.x] += 1;
    __syncthreads();
  }
}

__global__ void schedule(int* released, int tasks) {
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
  for (int task = first; task < tasks; task += gridDim.x * blockDim.x) atomicAdd(released, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kTasks = 4096, kSchedulers = 2;
  auto *released = zeros<int>(1), *taken = zeros<int>(1);
  auto* results = zeros<float>(kTasks * 1024);
  load(work);
  load(schedule);
  int least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const cudaStream_t first = stream_of_its_own();
  cudaStream_t second;  // its priority does not help
  CHECK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, greatest));
  if (fixed) schedule<<<kSchedulers, 128, 0, second>>>(released, kTasks);
  work<<<264, 1024, 0, first>>>(released, taken, kTasks, results);
  usleep(50000);  // the first requests are read
  if (!fixed) schedule<<<kSchedulers, 128, 0, second>>>(released, kTasks);
  CHECK(cudaGetLastError());
  return finish();
}
