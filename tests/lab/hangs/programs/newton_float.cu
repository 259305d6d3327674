// Newton's method in single precision, down to an error that rounding does not allow.
#include "begin.cuh"

__global__ void cube_roots(const float* numbers, float* roots, float tolerance) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float number = numbers[i];
  float root = number > 1 ? number : 1;
  while (fabsf(root * root * root - number) > tolerance * number)
    root -= (root * root * root - number) / (3 * root * root);
  roots[i] = root;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  const int n = 64 * 256;
  auto *numbers = zeros<float>(n), *roots = zeros<float>(n);
  auto* values = new float[n];
  for (int i = 0; i < n; ++i) values[i] = 1.1f + 0.37f * i;
  CHECK(cudaMemcpy(numbers, values, n * sizeof(float), cudaMemcpyHostToDevice));
  cube_roots<<<n / 256, 256>>>(numbers, roots, fixed ? 1e-5f : 1e-9f);
  CHECK(cudaGetLastError());
  return finish();
}
