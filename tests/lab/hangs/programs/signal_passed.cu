// Signals as in NVSHMEM, in the memory of the GPU: the receiver waits until the signal equals the
// number of chunks. The sender adds one for the flush as well, so it is larger for ever.
#include "begin.cuh"

__global__ void put_chunks(int chunks, float* inbox, unsigned long long* signal) {
  for (int chunk = 0; chunk < chunks; ++chunk) {
    inbox[chunk * 64 + threadIdx.x] = chunk;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(signal, 1ull);
  }
  if (threadIdx.x == 0) atomicAdd(signal, 1ull);
}

__global__ void unpack(unsigned long long wanted, bool exactly, const float* inbox,
                       const volatile unsigned long long* signal, float* out) {
  if (threadIdx.x == 0)
    while (exactly ? *signal != wanted : *signal < wanted) __nanosleep(100);
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = inbox[blockIdx.x * 64 + threadIdx.x];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr int kChunks = 8;
  auto *inbox = zeros<float>(kChunks * 64), *out = zeros<float>(kChunks * 64);
  auto* signal = zeros<unsigned long long>(1);
  load(put_chunks);
  load(unpack);
  const auto sending = stream_of_its_own(), receiving = stream_of_its_own();
  put_chunks<<<1, 64, 0, sending>>>(kChunks, inbox, signal);
  CHECK(cudaStreamSynchronize(sending));
  unpack<<<kChunks, 64, 0, receiving>>>(kChunks, !fixed, inbox, signal, out);
  CHECK(cudaGetLastError());
  return finish();
}
