// A simulation for ever: each step takes its scratch from the pool of the device, works on it, and
// gives it back, all in one stream; every 32 steps the host waits and looks at the energy.
#include "begin.cuh"

__global__ void integrate(float* scratch, float* energy, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = i * 1e-6f;
  for (int step = 0; step < steps; ++step) x = x * 0.99999f + 1e-5f;
  scratch[i] = x;
  if (i == 0) *energy += x;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* energy = zeros<float>(1);
  load(integrate);
  const auto stream = stream_of_its_own();
  for (long step = 1;; ++step) {
    float *scratch, now;
    CHECK(cudaMallocAsync(&scratch, (64 + step % 7) << 20, stream));
    integrate<<<1024, 256, 0, stream>>>(scratch, energy, 1500000);
    CHECK(cudaGetLastError());
    CHECK(cudaFreeAsync(scratch, stream));
    if (step % 32 == 0) {
      CHECK(cudaMemcpyAsync(&now, energy, sizeof(now), cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
      if (now < 0) break;
    }
  }
  return finish();
}
