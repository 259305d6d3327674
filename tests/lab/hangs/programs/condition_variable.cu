// The main thread waits on a condition variable for a host function that comes after a kernel, and
// that kernel waits for what the main thread would set afterwards.
#include <condition_variable>
#include <mutex>

#include "begin.cuh"

struct Done {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
};

__global__ void run_task(const volatile int* acknowledged, int* out) {
  if (threadIdx.x == 0)
    while (*acknowledged == 0) __nanosleep(1000);
  __syncthreads();
  out[threadIdx.x] = 1;
}

void notify(void* of) {
  auto* done = static_cast<Done*>(of);
  {
    const std::lock_guard lock(done->mutex);
    done->done = true;
  }
  done->changed.notify_all();
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int* acknowledged = shared_with_host<int>(1);
  auto* out = zeros<int>(64);
  load(run_task);
  Done done;
  const auto stream = stream_of_its_own();
  run_task<<<1, 64, 0, stream>>>(acknowledged, out);
  CHECK(cudaGetLastError());
  CHECK(cudaLaunchHostFunc(stream, notify, &done));
  if (fixed) *static_cast<volatile int*>(acknowledged) = 1;
  std::unique_lock lock(done.mutex);
  done.changed.wait(lock, [&] { return done.done; });
  *static_cast<volatile int*>(acknowledged) = 1;
  return finish();
}
