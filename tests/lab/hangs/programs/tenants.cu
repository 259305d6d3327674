// Each of 24 tenants has a stream and a captured graph of its own, which follows a kernel that
// waits for the model. The model is published when all tenants have submitted.
#include "begin.cuh"

constexpr int kTenants = 24;

__global__ void await_model(const volatile int* version) {
  while (*version == 0) __nanosleep(200);
}

__global__ void layer(float* x, float weight) { x[threadIdx.x] = tanhf(x[threadIdx.x] * weight); }

__global__ void publish_model(int* version) { atomicExch(version, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* version = zeros<int>(1);
  auto* x = zeros<float>(kTenants * 128);
  load(await_model);
  load(layer);
  load(publish_model);
  cudaStream_t streams[kTenants];
  cudaGraphExec_t models[kTenants];
  for (int i = 0; i < kTenants; ++i) {
    streams[i] = stream_of_its_own();
    CHECK(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeThreadLocal));
    for (int j = 0; j < 3; ++j) layer<<<1, 128, 0, streams[i]>>>(x + i * 128, 0.5f + j);
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(streams[i], &graph));
    CHECK(cudaGraphInstantiate(&models[i], graph, 0));
    CHECK(cudaGraphLaunch(models[i], streams[i]));  // warm up
  }
  CHECK(cudaDeviceSynchronize());
  const auto control = stream_of_its_own();
  if (fixed) publish_model<<<1, 1, 0, control>>>(version);
  for (int i = 0; i < kTenants; ++i) {
    await_model<<<1, 1, 0, streams[i]>>>(version);
    CHECK(cudaGraphLaunch(models[i], streams[i]));
  }
  if (!fixed) publish_model<<<1, 1, 0, control>>>(version);
  CHECK(cudaGetLastError());
  return finish();
}
