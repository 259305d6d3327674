// The host reads the progress of a service with a copy in its stream, and would then stop it.
#include "begin.cuh"

__global__ void service(const volatile int* stop, int* progress) {
  while (!*stop) atomicAdd(progress, 1);
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *stop = shared_with_host<int>(1), *read = shared_with_host<int>(1);
  auto* progress = zeros<int>(1);
  load(service);
  const auto serving = stream_of_its_own();
  const auto reading = fixed ? stream_of_its_own() : serving;
  service<<<1, 1, 0, serving>>>(stop, progress);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpyAsync(read, progress, sizeof(int), cudaMemcpyDeviceToHost, reading));
  CHECK(cudaStreamSynchronize(reading));
  std::printf("progress: %d\n", *read);
  *static_cast<volatile int*>(stop) = 1;
  return finish();
}
