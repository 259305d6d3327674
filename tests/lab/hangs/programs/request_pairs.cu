// A consumer waits on its stream for a producer on another; a kernel that packs the result comes
// behind the consumer. There is one connection, and the producer was issued last.
#include "begin.cuh"

__global__ void consume(const volatile int* full, const float* buffer, float* out) {
  if (threadIdx.x == 0)
    while (*full == 0) __nanosleep(100);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = buffer[blockIdx.x * blockDim.x + threadIdx.x];
}

__global__ void pack(float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] *= 0.5f; }

__global__ void produce(int* full, float* buffer) {
  for (int at = threadIdx.x; at < 4 * 128; at += blockDim.x) buffer[at] = at;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(full, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* full = zeros<int>(1);
  auto *buffer = zeros<float>(4 * 128), *out = zeros<float>(4 * 128);
  load(consume);
  load(pack);
  load(produce);
  const cudaStream_t consumer = stream_of_its_own(), producer = stream_of_its_own();
  if (fixed) produce<<<1, 128, 0, producer>>>(full, buffer);
  consume<<<4, 128, 0, consumer>>>(full, buffer, out);
  pack<<<4, 128, 0, consumer>>>(out);
  if (!fixed) produce<<<1, 128, 0, producer>>>(full, buffer);
  CHECK(cudaGetLastError());
  return finish();
}
