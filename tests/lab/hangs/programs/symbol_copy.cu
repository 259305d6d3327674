// The host tells a kernel to stop by cudaMemcpyToSymbol, which goes through the legacy stream.
#include "begin.cuh"

__device__ volatile int stop_requested;

__global__ void heartbeat(unsigned long long* beats) {
  while (stop_requested == 0) {
    atomicAdd(beats, 1ull);
    __nanosleep(1000);
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* beats = zeros<unsigned long long>(1);
  const int one = 1, zero = 0;
  CHECK(cudaMemcpyToSymbol(stop_requested, &zero, sizeof zero));
  load(heartbeat);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, fixed ? cudaStreamNonBlocking : cudaStreamDefault));
  heartbeat<<<8, 32, 0, stream>>>(beats);
  CHECK(cudaGetLastError());
  usleep(300000);
  CHECK(cudaMemcpyToSymbol(stop_requested, &one, sizeof one));
  return finish();
}
