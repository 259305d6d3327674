// A second thread logs each step with a kernel of its own, for which it names no stream. The main
// thread has a step in one stream that waits for a step in another one.
#include <atomic>
#include <thread>

#include "begin.cuh"

__global__ void log_step(int step, int* log) { log[step] = step; }

__global__ void upper(const volatile int* lower_done, float* x) {
  if (threadIdx.x == 0)
    while (*lower_done == 0) __nanosleep(100);
  __syncthreads();
  x[threadIdx.x] += 1;
}

__global__ void lower(int* lower_done) { atomicExch(lower_done, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *done = zeros<int>(1), *log = zeros<int>(8);
  auto* x = zeros<float>(64);
  load(log_step);
  load(upper);
  load(lower);
  cudaStream_t first, second, logging = nullptr;
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreate(&second));
  if (fixed) logging = stream_of_its_own();
  std::atomic<int> asked{0}, logged{0};
  std::thread logger([&] {
    CHECK(cudaSetDevice(0));
    for (int step = 1; step <= 2; ++step) {
      while (asked < step) usleep(100);
      log_step<<<1, 1, 0, logging>>>(step, log);
      CHECK(cudaGetLastError());
      logged = step;
    }
  });
  upper<<<1, 64, 0, first>>>(done, x);
  asked = 1;
  while (logged < 1) usleep(100);
  lower<<<1, 1, 0, second>>>(done);
  asked = 2;
  CHECK(cudaGetLastError());
  logger.join();
  return finish();
}
