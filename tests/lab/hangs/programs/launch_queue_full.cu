// A thousand and more kernels are launched behind one that waits for the host. The launch that
// finds the stream's buffer full does not return.
#include "begin.cuh"

__global__ void hold(const volatile int* go) {
  while (*go == 0) __nanosleep(1000);
}

__global__ void update(float* x, int step) { x[threadIdx.x] += step; }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* x = zeros<float>(64);
  int* go = shared_with_host<int>(1);
  load(hold);
  load(update);
  const auto stream = stream_of_its_own();
  hold<<<1, 1, 0, stream>>>(go);
  const int steps = fixed ? 200 : 20000;
  for (int step = 0; step < steps; ++step) update<<<1, 64, 0, stream>>>(x, step);
  CHECK(cudaGetLastError());
  *static_cast<volatile int*>(go) = 1;
  return finish();
}
