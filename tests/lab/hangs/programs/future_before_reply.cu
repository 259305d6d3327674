// An asynchronous task runs a solver that asks for a tolerance in the middle of its work, and waits
// for its stream. The main thread takes the result of the task, and sets the tolerance.
#include <future>

#include "begin.cuh"

__global__ void solve(volatile int* asks, const volatile float* tolerance, float* x) {
  float error = 1;
  for (int i = 0; i < 1000; ++i) error *= 0.999f;
  if (threadIdx.x == 0) {
    *asks = 1;
    while (*tolerance == 0) __nanosleep(700);
  }
  __syncthreads();
  while (error > *tolerance) error *= 0.99f;
  x[threadIdx.x] = error;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* x = zeros<float>(256);
  volatile int* asks = shared_with_host<int>(1);
  volatile float* tolerance = shared_with_host<float>(1);
  load(solve);
  auto solution = std::async(std::launch::async, [=] {
    const auto stream = stream_of_its_own();
    float first;
    solve<<<1, 256, 0, stream>>>(asks, tolerance, x);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&first, x, sizeof(first), cudaMemcpyDeviceToHost));
    return first;
  });
  while (*asks == 0) usleep(50);
  if (fixed) *tolerance = 1e-3f;
  const float error = solution.get();
  *tolerance = error / 10;
  return finish();
}
