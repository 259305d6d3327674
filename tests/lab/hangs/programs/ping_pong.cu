// A thread of the host and a kernel send each other messages through mapped memory. The host takes
// 50 ms for each.
#include <thread>

#include "begin.cuh"

__global__ void play(const volatile int* from_host, volatile int* to_host, int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    while (*from_host < round) __nanosleep(1000);
    __threadfence_system();
    *to_host = round;
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const int rounds = 160;
  int *from_host = shared_with_host<int>(1), *to_host = shared_with_host<int>(1);
  load(play);
  const auto stream = stream_of_its_own();
  play<<<1, 1, 0, stream>>>(from_host, to_host, rounds);
  CHECK(cudaGetLastError());
  std::thread player([&] {
    for (int round = 1; round <= rounds; ++round) {
      usleep(50000);
      *static_cast<volatile int*>(from_host) = round;
      while (*static_cast<volatile int*>(to_host) < round) usleep(100);
    }
  });
  CHECK(cudaStreamSynchronize(stream));
  player.join();
  return finish();
}
