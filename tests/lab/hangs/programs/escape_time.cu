// A picture of the Mandelbrot set with very many turns: loops that data end.
#include "begin.cuh"

__global__ void escape(unsigned* out, int width, unsigned most) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  const double cr = -2.0 + 3.0 * x / width, ci = -1.0 + 2.0 * y / gridDim.y;
  double r = 0, i = 0;
  unsigned turns = 0;
  while (r * r + i * i < 4 && turns < most) {
    const double next = r * r - i * i + cr;
    i = 2 * r * i + ci;
    r = next;
    ++turns;
  }
  out[y * width + x] = turns;
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const int width = 512, height = 32;
  auto* out = zeros<unsigned>(width * height);
  escape<<<dim3(width / 128, height), 128>>>(out, width, 2000000000u);
  CHECK(cudaGetLastError());
  return finish();
}
