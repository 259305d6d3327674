// One thread waits for its stream while it holds a mutex. Another one needs that mutex to give the
// kernel in the stream its next batch.
#include <atomic>
#include <mutex>
#include <thread>

#include "begin.cuh"

__global__ void take_batch(const volatile int* batch, float* x) {
  if (threadIdx.x == 0)
    while (*batch == 0) __nanosleep(500);
  __syncthreads();
  x[threadIdx.x] = *batch;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int* batch = shared_with_host<int>(1);
  auto* x = zeros<float>(128);
  load(take_batch);
  const auto stream = stream_of_its_own();
  std::mutex state;
  std::atomic<bool> launched{false};
  std::thread trainer([&] {
    CHECK(cudaSetDevice(0));
    std::unique_lock lock(state);
    take_batch<<<1, 128, 0, stream>>>(batch, x);
    CHECK(cudaGetLastError());
    launched = true;
    if (fixed) lock.unlock();
    CHECK(cudaStreamSynchronize(stream));
  });
  std::thread feeder([&] {
    while (!launched) usleep(1000);
    const std::lock_guard lock(state);
    *static_cast<volatile int*>(batch) = 1;
  });
  trainer.join();
  feeder.join();
  return finish();
}
