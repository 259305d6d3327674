// A staging buffer of pinned memory is freed when its upload has ended, as cudaEventSynchronize
// said. The kernel that uses the upload waits for the host meanwhile.
#include "begin.cuh"

__global__ void filter(const volatile int* go, const float* samples, float* out, int count) {
  if (threadIdx.x == 0)
    while (*go == 0) {
    }
  __syncthreads();
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x)
    out[at] = samples[at] * 0.5f;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kSamples = 8 << 20;
  auto *samples = zeros<float>(kSamples), *out = zeros<float>(kSamples);
  volatile int* go = shared_with_host<int>(1);
  float* staging;
  CHECK(cudaMallocHost(&staging, kSamples * sizeof(float)));
  for (int at = 0; at < kSamples; ++at) staging[at] = at;
  load(filter);
  const cudaStream_t upload = stream_of_its_own(), compute = stream_of_its_own();
  cudaEvent_t uploaded;
  CHECK(cudaEventCreate(&uploaded));
  CHECK(
      cudaMemcpyAsync(samples, staging, kSamples * sizeof(float), cudaMemcpyHostToDevice, upload));
  CHECK(cudaEventRecord(uploaded, upload));
  CHECK(cudaStreamWaitEvent(compute, uploaded, 0));
  filter<<<64, 256, 0, compute>>>(go, samples, out, kSamples);
  CHECK(cudaEventSynchronize(uploaded));
  usleep(20000);
  if (fixed) *go = 1;
  CHECK(cudaFreeHost(staging));
  *go = 1;
  return finish();
}
