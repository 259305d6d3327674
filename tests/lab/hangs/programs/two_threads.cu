// Two threads of the host with a stream each; the one with the work that is waited for comes later.
#include <thread>

#include "begin.cuh"

__global__ void train(volatile unsigned* batches, unsigned wanted, float* weights) {
  while (*batches < wanted) __nanosleep(50);
  weights[threadIdx.x] -= 0.1f;
}

__global__ void log_loss(const float* weights, float* loss) { *loss = weights[0] * weights[0]; }

__global__ void load_batch(unsigned* batches) { atomicAdd(batches, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* batches = zeros<unsigned>(1);
  auto* weights = zeros<float>(257);
  load(train);
  load(log_loss);
  load(load_batch);
  const auto trainer_stream = stream_of_its_own(), loader_stream = stream_of_its_own();
  const auto trains = [=] {
    CHECK(cudaSetDevice(0));
    train<<<1, 256, 0, trainer_stream>>>(batches, 2, weights);
    log_loss<<<1, 1, 0, trainer_stream>>>(weights, weights + 256);
    CHECK(cudaGetLastError());
  };
  const auto loads = [=] {
    CHECK(cudaSetDevice(0));
    for (int i = 0; i < 2; ++i) load_batch<<<1, 1, 0, loader_stream>>>(batches);
    CHECK(cudaGetLastError());
  };
  if (fixed) {
    std::thread(loads).join();
    std::thread(trains).join();
  } else {
    std::thread trainer(trains);
    std::thread loader([=] {
      usleep(200000);  // the data is read from a disk
      loads();
    });
    trainer.join();
    loader.join();
  }
  return finish();
}
