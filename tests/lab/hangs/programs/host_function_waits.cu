// A host function waits for a buffer that the main thread gives back when it has waited for the
// GPU.
#include <condition_variable>
#include <mutex>

#include "begin.cuh"

struct Pool {
  std::mutex mutex;
  std::condition_variable given_back;
  int buffers = 0;

  void give() {
    const std::lock_guard lock(mutex);
    ++buffers;
    given_back.notify_one();
  }
};

__global__ void encode(float* values) { values[threadIdx.x] = 0.5f * values[threadIdx.x]; }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  static Pool pool;
  auto* values = zeros<float>(256);
  load(encode);
  const auto stream = stream_of_its_own();
  encode<<<1, 256, 0, stream>>>(values);
  CHECK(cudaLaunchHostFunc(
      stream,
      [](void*) {
        std::unique_lock lock(pool.mutex);
        pool.given_back.wait(lock, [] { return pool.buffers > 0; });
        --pool.buffers;
      },
      nullptr));
  encode<<<1, 256, 0, stream>>>(values);
  CHECK(cudaGetLastError());
  if (fixed) pool.give();
  CHECK(cudaStreamSynchronize(stream));
  pool.give();
  return finish();
}
