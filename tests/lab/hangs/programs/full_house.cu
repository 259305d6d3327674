// A batch of four waves of blocks, each of about three seconds. A kernel of another stream waits
// until blocks of the first wave leave, and the host waits for that kernel.
#include "begin.cuh"

__global__ void __launch_bounds__(1024, 2) batch(long work, float* out) {
  float x = threadIdx.x;
  for (long i = 0; i < work; ++i) x = fmaf(x, 0.999f, 0.25f);
  out[blockIdx.x * 1024 + threadIdx.x] = x;
}

__global__ void reply(float* out) { out[threadIdx.x] = 1; }

int main(int argc, char** argv) {
  begin(argc, argv);
  auto *out = zeros<float>(4 * 264 * 1024), *answer = zeros<float>(64);
  load(batch);
  load(reply);
  const auto urgent = stream_of_its_own();
  batch<<<4 * 264, 1024, 0, stream_of_its_own()>>>(350'000'000, out);
  usleep(50000);
  reply<<<1, 64, 0, urgent>>>(answer);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamSynchronize(urgent));
  return finish();
}
