// A control loop: a stream waits for each tick of a clock, a word of pinned memory that another
// host thread counts up every 350 ms, and runs a kernel for it. The host waits for each step.
#include <thread>

#include "begin.cuh"

constexpr int kTicks = 150;

__global__ void control(float* state) { state[threadIdx.x] = 0.9f * state[threadIdx.x] + 1; }

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* state = zeros<float>(256);
  auto* clock = shared_with_host<int>(1);
  load(control);
  std::thread ticking([=] {
    for (int tick = 1; tick <= kTicks; ++tick) {
      usleep(350000);
      *static_cast<volatile int*>(clock) = tick;
    }
  });
  const auto stream = stream_of_its_own();
  for (int tick = 1; tick <= kTicks; ++tick) {
    CHECK(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(clock), tick,
                              CU_STREAM_WAIT_VALUE_GEQ));
    control<<<1, 256, 0, stream>>>(state);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
  }
  ticking.join();
  return finish();
}
