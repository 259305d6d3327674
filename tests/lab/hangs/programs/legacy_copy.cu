// An asynchronous copy of parameters in stream 0, between a kernel that polls and the one it needs.
#include "begin.cuh"

__global__ void simulate(unsigned long long* ticket, double* state) {
  if (threadIdx.x == 0)
    while (*static_cast<volatile unsigned long long*>(ticket) == 0) {
    }
  __syncthreads();
  state[blockIdx.x * 64 + threadIdx.x] += 1;
}

__global__ void issue_ticket(unsigned long long* ticket) { atomicExch(ticket, 1ull); }

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto* ticket = zeros<unsigned long long>(1);
  auto* state = zeros<double>(16 * 64);
  auto* parameters = zeros<float>(1 << 16);
  auto* on_host = shared_with_host<float>(1 << 16);
  load(simulate);
  load(issue_ticket);
  cudaStream_t simulating, issuing;
  CHECK(cudaStreamCreate(&simulating));
  CHECK(cudaStreamCreate(&issuing));
  const auto copying = fixed ? stream_of_its_own() : nullptr;
  simulate<<<16, 64, 0, simulating>>>(ticket, state);
  CHECK(cudaMemcpyAsync(parameters, on_host, sizeof(float) << 16, cudaMemcpyHostToDevice, copying));
  issue_ticket<<<1, 1, 0, issuing>>>(ticket);
  CHECK(cudaGetLastError());
  return finish();
}
