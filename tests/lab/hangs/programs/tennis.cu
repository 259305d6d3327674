// Two kernels hand a ball to each other in the memory of the GPU. Each thinks for 50 ms with it.
#include "begin.cuh"

__global__ void play(int side, int rounds, long thoughts, volatile int* ball, float* thought) {
  float x = side;
  for (int round = 0; round < rounds; ++round) {
    while (*ball != 2 * round + side) __nanosleep(200);
    for (long i = 0; i < thoughts; ++i) x = fmaf(x, 0.999f, 0.25f);
    __threadfence();
    *ball = 2 * round + side + 1;
  }
  thought[side] = x;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* ball = zeros<int>(1);
  auto* thought = zeros<float>(2);
  load(play);
  for (int side = 0; side < 2; ++side)
    play<<<1, 1, 0, stream_of_its_own()>>>(side, 200, 25'000'000, ball, thought);
  CHECK(cudaGetLastError());
  return finish();
}
