// A temporary vector of Thrust leaves its scope, which frees its memory, when a kernel runs that
// waits for the host's next message.
#include <thrust/device_vector.h>

#include "begin.cuh"

__global__ void serve(const volatile int* message, int* answer) {
  while (*message == 0) __nanosleep(500);
  *answer = *message + 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int* message = shared_with_host<int>(1);
  auto* answer = zeros<int>(1);
  load(serve);
  {
    const thrust::device_vector<float> scratch(1 << 20, 1.0f);
    CHECK(cudaDeviceSynchronize());
    serve<<<1, 1, 0, stream_of_its_own()>>>(message, answer);
    CHECK(cudaGetLastError());
    usleep(50000);
    if (fixed) *static_cast<volatile int*>(message) = 1;
  }
  *static_cast<volatile int*>(message) = 1;
  return finish();
}
