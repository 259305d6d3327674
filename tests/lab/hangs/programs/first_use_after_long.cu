// A kernel is used for the first time while another one runs for seven seconds, and is loaded when
// that has ended. Then there is another one of seven seconds.
#include "begin.cuh"

__global__ void relax(long work, float* x) {
  float own = x[threadIdx.x];
  for (long i = 0; i < work; ++i) own = fmaf(own, 0.999f, 0.25f);
  x[threadIdx.x] = own;
}

__global__ void residual(const float* x, float* sum) { atomicAdd(sum, x[threadIdx.x]); }

int main(int argc, char** argv) {
  begin(argc, argv);
  auto *x = zeros<float>(64), *sum = zeros<float>(1);
  load(relax);
  const auto first = stream_of_its_own(), second = stream_of_its_own();
  relax<<<4, 64, 0, first>>>(3'300'000'000, x);
  usleep(50000);
  residual<<<1, 64, 0, second>>>(x, sum);
  relax<<<4, 64, 0, second>>>(3'300'000'000, x);
  CHECK(cudaGetLastError());
  return finish();
}
