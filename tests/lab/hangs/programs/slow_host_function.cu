// Host functions of 1.5 s each, as if they wrote checkpoints, with kernels between them.
#include "begin.cuh"

__global__ void train_step(float* weights) { weights[blockIdx.x * 256 + threadIdx.x] *= 0.99f; }

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* weights = zeros<float>(1024 * 256);
  load(train_step);
  const auto stream = stream_of_its_own();
  for (int i = 0; i < 20; ++i) {
    train_step<<<1024, 256, 0, stream>>>(weights);
    CHECK(cudaLaunchHostFunc(stream, [](void*) { usleep(1500000); }, nullptr));
  }
  CHECK(cudaGetLastError());
  return finish();
}
