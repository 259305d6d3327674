// 33 topics, each with 128 listeners of a warp that wait until the message of their topic is there.
// When all listen, two blocks publish the messages.
#include "begin.cuh"

constexpr int kTopics = 33;

__global__ void listen(int topic, int all, int* listening, volatile int* everyone,
                       const volatile int* messages, int* heard) {
  if (threadIdx.x == 0 && atomicAdd(listening, 1) == all - 1) *everyone = 1;
  int message;
  while ((message = messages[topic]) == 0) __nanosleep(2000);
  heard[(topic * gridDim.x + blockIdx.x) * 32 + threadIdx.x] = message;
}

__global__ void publish(int* messages) {
  const int topic = blockIdx.x * 32 + threadIdx.x;
  if (topic < kTopics) atomicExch(messages + topic, topic + 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int listeners = fixed ? 126 : 128;
  auto *listening = zeros<int>(1), *messages = zeros<int>(kTopics);
  auto* heard = zeros<int>(kTopics * 128 * 32);
  auto* everyone = shared_with_host<int>(1);
  load(listen);
  load(publish);
  const auto publisher = stream_of_its_own();
  cudaStream_t streams[kTopics];
  for (auto& each : streams) each = stream_of_its_own();
  for (int topic = 0; topic < kTopics; ++topic)
    listen<<<listeners, 32, 0, streams[topic]>>>(topic, kTopics * listeners, listening, everyone,
                                                 messages, heard);
  CHECK(cudaGetLastError());
  while (*static_cast<volatile int*>(everyone) == 0) {
  }
  publish<<<2, 32, 0, publisher>>>(messages);
  CHECK(cudaGetLastError());
  return finish();
}
