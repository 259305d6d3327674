// A CUDA program for a simulator: squares of 0 to 999, in 8 blocks. Prints the last one.
#include <cstdio>
#include <vector>

__global__ void square(float* values, int count) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k < count) values[k] *= values[k];
}

int main() {
  constexpr int kCount = 1000;
  std::vector<float> host(kCount);
  for (int k = 0; k < kCount; ++k) host[k] = static_cast<float>(k);
  const size_t bytes = kCount * sizeof(float);
  float* values = nullptr;
  cudaMalloc(&values, bytes);
  cudaMemcpy(values, host.data(), bytes, cudaMemcpyHostToDevice);
  square<<<8, 128>>>(values, kCount);
  cudaMemcpy(host.data(), values, bytes, cudaMemcpyDeviceToHost);
  std::printf("%.0f\n", host.back());
}
