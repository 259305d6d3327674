// A green context has 16 SMs, and a team of 18 blocks that wait for each other is started in it.
// Each block takes more than half of the shared memory of an SM.
#include "begin.cuh"

__global__ void prefill(unsigned* arrived, unsigned team, float* out) {
  extern __shared__ float keys[];
  keys[threadIdx.x] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*static_cast<volatile unsigned*>(arrived) < team) __nanosleep(100);
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = keys[threadIdx.x];
}

CUstream stream_of_partition(unsigned sms) {
  CUdevice device;
  CUdevResource all, part, rest;
  CUdevResourceDesc description;
  CUgreenCtx context;
  CUstream stream;
  unsigned parts = 1;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  CHECK(cuDevSmResourceSplitByCount(&part, &parts, &all, &rest, 0, sms));
  CHECK(cuDevResourceGenerateDesc(&description, &part, 1));
  CHECK(cuGreenCtxCreate(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  CHECK(cuGreenCtxStreamCreate(&stream, context, CU_STREAM_NON_BLOCKING, 0));
  return stream;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kShared = 130 << 10;
  const unsigned team = fixed ? 16 : 18;
  auto* arrived = zeros<unsigned>(1);
  auto* out = zeros<float>(team * 128);
  allow(prefill, kShared);
  const cudaStream_t stream = stream_of_partition(16);
  prefill<<<1, 128, kShared, stream>>>(arrived, 1, out);  // once alone
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemset(arrived, 0, sizeof(unsigned)));
  CHECK(cudaDeviceSynchronize());
  prefill<<<team, 128, kShared, stream>>>(arrived, team, out);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamSynchronize(stream));
  return finish();
}
