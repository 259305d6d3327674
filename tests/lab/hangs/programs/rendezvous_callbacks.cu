// Host functions of two streams meet, to write both halves of a file together. There is one thread
// for all host functions.
#include <condition_variable>
#include <mutex>

#include "begin.cuh"

struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  int came = 0;
  bool waits = true;
};

void CUDART_CB write_half(void* argument) {
  auto* meeting = static_cast<Meeting*>(argument);
  std::unique_lock lock(meeting->mutex);
  ++meeting->came;
  meeting->changed.notify_all();
  if (meeting->waits) meeting->changed.wait(lock, [&] { return meeting->came == 2; });
}

__global__ void render(float* half) { half[threadIdx.x] = threadIdx.x; }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  static Meeting meeting;
  meeting.waits = !fixed;
  auto* picture = zeros<float>(128);
  load(render);
  for (int half = 0; half < 2; ++half) {
    const auto stream = stream_of_its_own();
    render<<<1, 64, 0, stream>>>(picture + half * 64);
    CHECK(cudaLaunchHostFunc(stream, write_half, &meeting));
    render<<<1, 64, 0, stream>>>(picture + half * 64);
  }
  CHECK(cudaGetLastError());
  return finish();
}
