// Both kernels that depend on each other were used before. Between them, a third one that has
// nothing to do with them is launched for the first time.
#include "begin.cuh"

__global__ void mix(const volatile int* drawn, float* x) {
  if (threadIdx.x == 0)
    while (*drawn == 0) __nanosleep(100);
  __syncthreads();
  x[threadIdx.x] = 0.5f * x[threadIdx.x] + 1;
}

__global__ void draw(int* drawn) { atomicExch(drawn, 1); }

__global__ void note_time(long long* times) { times[0] = clock64(); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* drawn = zeros<int>(1);
  auto* x = zeros<float>(64);
  auto* times = zeros<long long>(1);
  const auto mixing = stream_of_its_own(), drawing = stream_of_its_own();
  load(mix);
  load(draw);
  if (fixed) load(note_time);
  mix<<<1, 64, 0, mixing>>>(drawn, x);
  usleep(50000);
  note_time<<<1, 1, 0, stream_of_its_own()>>>(times);
  draw<<<1, 1, 0, drawing>>>(drawn);
  CHECK(cudaGetLastError());
  return finish();
}
