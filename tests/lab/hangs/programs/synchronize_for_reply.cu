// A persistent kernel answers commands in host memory. The host sends one, and calls
// cudaDeviceSynchronize to have the answer; the command to stop would come after that.
#include "begin.cuh"

constexpr int kStop = -1;

__global__ void answer(const volatile int* command, volatile int* reply, float* state) {
  int last = 0;
  while (true) {
    int now = *command;
    while (now == last) now = *command;
    last = now;
    if (now == kStop) return;
    state[threadIdx.x] += now;
    __syncwarp();
    if (threadIdx.x == 0) *reply = now;
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  volatile int *command = shared_with_host<int>(1), *reply = shared_with_host<int>(1);
  auto* state = zeros<float>(32);
  load(answer);
  answer<<<1, 32, 0, stream_of_its_own()>>>(command, reply, state);
  CHECK(cudaGetLastError());
  for (int number = 1; number <= 3; ++number) {
    *command = number;
    if (fixed)
      while (*reply != number) usleep(100);
    else
      CHECK(cudaDeviceSynchronize());
  }
  *command = kStop;
  return finish();
}
