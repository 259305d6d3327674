// 24 threads of the host have a replica and a stream each. A replica waits for the weights, and
// applies them with a second kernel; the 25th stream brings the weights when all have begun.
#include <thread>
#include <vector>

#include "begin.cuh"

constexpr int kReplicas = 24, kWeights = 256;

__global__ void await_weights(const volatile int* version, int wanted) {
  while (*version < wanted) __nanosleep(200);
}

__global__ void apply(const float* weights, float* replica) {
  replica[threadIdx.x] = weights[threadIdx.x];
}

__global__ void broadcast(float* weights, int* version) {
  weights[threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(version, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* version = zeros<int>(1);
  auto *weights = zeros<float>(kWeights), *replicas = zeros<float>(kReplicas * kWeights);
  load(await_weights);
  load(apply);
  load(broadcast);
  cudaStream_t streams[kReplicas + 1];
  for (auto& stream : streams) stream = stream_of_its_own();
  if (fixed) broadcast<<<1, kWeights, 0, streams[kReplicas]>>>(weights, version);
  std::vector<std::thread> threads;
  for (int replica = 0; replica < kReplicas; ++replica)
    threads.emplace_back([=, stream = streams[replica]] {
      await_weights<<<1, 32, 0, stream>>>(version, 1);
      apply<<<1, kWeights, 0, stream>>>(weights, replicas + replica * kWeights);
      CHECK(cudaGetLastError());
    });
  for (auto& thread : threads) thread.join();
  if (!fixed) broadcast<<<1, kWeights, 0, streams[kReplicas]>>>(weights, version);
  CHECK(cudaGetLastError());
  return finish();
}
