// A server with a thread and a default stream of its own per request. Each request waits for the
// weights of the model, and then answers. The thread that brings the weights comes last.
#include <atomic>
#include <thread>
#include <vector>

#include "begin.cuh"

__global__ void await_weights(const volatile int* version) {
  while (*version == 0) __nanosleep(500);
}

__global__ void respond(const float* weights, float* response) {
  response[threadIdx.x] = weights[threadIdx.x] * 2;
}

__global__ void bring_weights(float* weights, int* version) {
  weights[threadIdx.x] = threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(version, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int requests = 40;
  auto *weights = zeros<float>(64), *responses = zeros<float>(64 * requests);
  auto* version = zeros<int>(1);
  load(await_weights);
  load(respond);
  load(bring_weights);
  const auto loader = stream_of_its_own();
  if (fixed) bring_weights<<<1, 64, 0, loader>>>(weights, version);
  std::atomic<int> submitted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < requests; ++i)
    threads.emplace_back([&, i] {
      CHECK(cudaSetDevice(0));
      await_weights<<<1, 1, 0, cudaStreamPerThread>>>(version);
      respond<<<1, 64, 0, cudaStreamPerThread>>>(weights, responses + 64 * i);
      CHECK(cudaGetLastError());
      ++submitted;
      CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    });
  while (submitted < requests) usleep(1000);
  if (!fixed) bring_weights<<<1, 64, 0, loader>>>(weights, version);
  CHECK(cudaGetLastError());
  for (auto& thread : threads) thread.join();
  return finish();
}
