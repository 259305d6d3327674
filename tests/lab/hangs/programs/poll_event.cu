// The host asks for an event again and again, and does other things meanwhile. It answers the
// kernel only when the event has happened, which is behind that kernel.
#include "begin.cuh"

__global__ void negotiate(const volatile int* answer, int* result) {
  while (*answer == 0) __nanosleep(500);
  *result = *answer;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int* answer = shared_with_host<int>(1);
  auto* result = zeros<int>(1);
  load(negotiate);
  const auto stream = stream_of_its_own();
  cudaEvent_t over;
  CHECK(cudaEventCreateWithFlags(&over, cudaEventDisableTiming));
  if (fixed) CHECK(cudaEventRecord(over, stream));
  negotiate<<<1, 1, 0, stream>>>(answer, result);
  CHECK(cudaGetLastError());
  if (!fixed) CHECK(cudaEventRecord(over, stream));
  while (cudaEventQuery(over) == cudaErrorNotReady) usleep(20000);
  *static_cast<volatile int*>(answer) = 1;
  return finish();
}
