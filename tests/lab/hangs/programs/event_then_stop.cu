// The host waits for the event after a service kernel, and only then asks it to stop.
#include "begin.cuh"

__global__ void service(const volatile int* stop, volatile int* served) {
  while (*stop == 0) {
    *served = *served + 1;
    __nanosleep(2000);
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int* control = shared_with_host<int>(2);
  load(service);
  const auto stream = stream_of_its_own();
  cudaEvent_t over;
  CHECK(cudaEventCreateWithFlags(&over, cudaEventBlockingSync | cudaEventDisableTiming));
  service<<<1, 1, 0, stream>>>(control, control + 1);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(over, stream));
  volatile int* stop = control;
  usleep(100000);
  if (fixed) *stop = 1;
  CHECK(cudaEventSynchronize(over));
  *stop = 1;
  return finish();
}
