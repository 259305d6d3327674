// 40 host threads serve a session each in their per-thread default stream: a kernel that waits
// until the model is admitted, and one that replies. The main thread admits it when all have begun.
#include <atomic>
#include <thread>
#include <vector>

#include "begin.cuh"

constexpr int kSessions = 40;

__global__ void attend(const volatile int* admitted, float* states) {
  while (*admitted == 0) __nanosleep(500);
  states[threadIdx.x] += 1;
}

__global__ void reply(const float* states, float* replies) {
  replies[threadIdx.x] = 2 * states[threadIdx.x];
}

__global__ void admit(int* admitted) { atomicExch(admitted, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* admitted = zeros<int>(1);
  auto *states = zeros<float>(kSessions * 32), *replies = zeros<float>(kSessions * 32);
  load(attend);
  load(reply);
  load(admit);
  const auto control = stream_of_its_own();
  if (fixed) admit<<<1, 1, 0, control>>>(admitted);
  std::atomic<int> open{0}, begun{0};
  std::vector<std::thread> sessions;
  for (int i = 0; i < kSessions; ++i)
    sessions.emplace_back([=, &open, &begun] {
      CHECK(cudaStreamQuery(cudaStreamPerThread));
      ++open;
      while (open < kSessions) std::this_thread::yield();
      attend<<<1, 32, 0, cudaStreamPerThread>>>(admitted, states + i * 32);
      reply<<<1, 32, 0, cudaStreamPerThread>>>(states + i * 32, replies + i * 32);
      CHECK(cudaGetLastError());
      ++begun;
      CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    });
  while (begun < kSessions) std::this_thread::yield();
  if (!fixed) admit<<<1, 1, 0, control>>>(admitted);
  CHECK(cudaGetLastError());
  for (auto& session : sessions) session.join();
  return finish();
}
