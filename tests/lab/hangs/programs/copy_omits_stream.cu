// Two threads of the host: one renders, and its kernel waits for a ticket; the other copies the
// ticket on the GPU with cudaMemcpyAsync and leaves the stream out.
#include <thread>

#include "begin.cuh"

__global__ void render(const volatile int* ticket, int wanted, float* image) {
  if (threadIdx.x == 0)
    while (*ticket != wanted) __nanosleep(100);
  __syncthreads();
  image[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void issue_ticket(int* next) { atomicAdd(next, 1); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *ticket = zeros<int>(1), *next = zeros<int>(1);
  auto* image = zeros<float>(64 * 128);
  load(render);
  const cudaStream_t tickets = stream_of_its_own();
  issue_ticket<<<1, 1, 0, tickets>>>(next);
  CHECK(cudaMemcpyAsync(ticket, next, sizeof(int), cudaMemcpyDeviceToDevice, tickets));
  CHECK(cudaDeviceSynchronize());
  issue_ticket<<<1, 1, 0, tickets>>>(next);
  CHECK(cudaDeviceSynchronize());
  std::thread renderer([=] {
    cudaStream_t frames;
    CHECK(cudaStreamCreate(&frames));
    render<<<64, 128, 0, frames>>>(ticket, 2, image);
    CHECK(cudaGetLastError());
  });
  renderer.join();
  std::thread box_office([=] {
    if (fixed)
      CHECK(cudaMemcpyAsync(ticket, next, sizeof(int), cudaMemcpyDeviceToDevice, tickets));
    else
      CHECK(cudaMemcpyAsync(ticket, next, sizeof(int), cudaMemcpyDeviceToDevice));
  });
  box_office.join();
  return finish();
}
