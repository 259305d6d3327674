// A delay function: one thread squares a number modulo another 200 million times, which cannot be
// spread over threads.
#include "begin.cuh"

__global__ void square(unsigned long long* x, unsigned long long modulus, int times) {
  unsigned long long value = *x;
  for (int i = 0; i < times; ++i) value = value * value % modulus;
  *x = value;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  auto* x = zeros<unsigned long long>(1);
  const unsigned long long modulus = 4294967291;
  unsigned long long value = 123456789;
  CHECK(cudaMemcpy(x, &value, sizeof(value), cudaMemcpyHostToDevice));
  load(square);
  square<<<1, 1>>>(x, modulus, 1000);  // a short delay first
  CHECK(cudaDeviceSynchronize());
  square<<<1, 1>>>(x, modulus, 200000000);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&value, x, sizeof(value), cudaMemcpyDeviceToHost));
  std::printf("%llu\n", value);
  return finish();
}
