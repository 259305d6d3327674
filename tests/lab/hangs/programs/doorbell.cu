// A stream waits for a doorbell in memory before it answers. The kernel that rings comes after it,
// in another stream. One connection.
#include "begin.cuh"

__global__ void answer(float* reply) { reply[threadIdx.x] = threadIdx.x; }

__global__ void ring(unsigned* bell) { atomicExch(bell, 1u); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* bell = zeros<unsigned>(1);
  auto* reply = zeros<float>(64);
  load(answer);
  load(ring);
  const auto answering = stream_of_its_own(), ringing = stream_of_its_own();
  if (fixed) ring<<<1, 1, 0, ringing>>>(bell);
  CHECK(cuStreamWaitValue32(answering, reinterpret_cast<CUdeviceptr>(bell), 1,
                            CU_STREAM_WAIT_VALUE_GEQ));
  answer<<<1, 64, 0, answering>>>(reply);
  if (!fixed) ring<<<1, 1, 0, ringing>>>(bell);
  CHECK(cudaGetLastError());
  return finish();
}
