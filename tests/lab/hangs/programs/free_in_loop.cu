// Each batch has a buffer of its own, which is freed by cudaFree while the kernel that takes the
// batches runs on.
#include "begin.cuh"

__global__ void take_batches(float* volatile* mailbox, int batches, volatile int* taken) {
  for (int i = 0; i < batches; ++i) {
    while (mailbox[i] == nullptr) __nanosleep(500);
    mailbox[i][0] += 1;
    __threadfence_system();
    *taken = i + 1;
  }
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int batches = 8;
  auto** mailbox = shared_with_host<float*>(batches);
  int* taken = shared_with_host<int>(1);
  load(take_batches);
  float* buffers[batches];
  for (auto& buffer : buffers) buffer = zeros<float>(1 << 20);
  const auto stream = stream_of_its_own();
  take_batches<<<1, 1, 0, stream>>>(mailbox, batches, taken);
  CHECK(cudaGetLastError());
  for (int i = 0; i < batches; ++i) {
    *static_cast<float* volatile*>(mailbox + i) = buffers[i];
    while (*static_cast<volatile int*>(taken) < i + 1) usleep(100);
    if (!fixed) CHECK(cudaFree(buffers[i]));
  }
  CHECK(cudaStreamSynchronize(stream));
  if (fixed)
    for (auto* buffer : buffers) CHECK(cudaFree(buffer));
  return finish();
}
