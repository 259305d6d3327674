// A staging buffer is unregistered while a kernel still waits for the host's next word, which comes
// after that.
#include "begin.cuh"

__global__ void consume(const volatile int* words, int* sum) {
  while (words[0] == 0) __nanosleep(500);
  *sum += words[0];
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  constexpr size_t kBytes = 1 << 20;
  void* staging = std::aligned_alloc(4096, kBytes);
  std::memset(staging, 0, kBytes);
  CHECK(cudaHostRegister(staging, kBytes, cudaHostRegisterDefault));
  int* words = shared_with_host<int>(1);
  auto* sum = zeros<int>(1);
  load(consume);
  consume<<<1, 1, 0, stream_of_its_own()>>>(words, sum);
  CHECK(cudaGetLastError());
  usleep(50000);
  if (fixed) *static_cast<volatile int*>(words) = 1;
  CHECK(cudaHostUnregister(staging));
  *static_cast<volatile int*>(words) = 1;
  return finish();
}
