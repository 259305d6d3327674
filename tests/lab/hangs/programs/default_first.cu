// A persistent service without a stream, and its clients in streams from cudaStreamCreate.
#include "begin.cuh"

constexpr int kClients = 4;

__global__ void service(int* requests, float* answers) {
  for (int served = 0; served < kClients;) {
    for (int client = 0; client < kClients; ++client) {
      if (atomicCAS(&requests[client], 1, 2) == 1) {
        answers[client] = sqrtf(client + 1.0f);
        ++served;
      }
    }
  }
}

__global__ void client(int* requests, int number) { atomicExch(&requests[number], 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* requests = zeros<int>(kClients);
  auto* answers = zeros<float>(kClients);
  cudaStream_t streams[kClients];
  for (auto& stream : streams) {
    CHECK(cudaStreamCreateWithFlags(&stream, fixed ? cudaStreamNonBlocking : cudaStreamDefault));
  }
  service<<<1, 1>>>(requests, answers);
  for (int i = 0; i < kClients; ++i) client<<<1, 1, 0, streams[i]>>>(requests, i);
  CHECK(cudaGetLastError());
  return finish();
}
