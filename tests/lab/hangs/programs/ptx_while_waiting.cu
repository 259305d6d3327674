// A plug-in comes as PTX and is loaded when it is first needed, while a kernel waits for what the
// plug-in computes.
#include "begin.cuh"

constexpr char kPlugIn[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry shade(.param .u64 shaded)
{
  .reg .u64 %address;
  .reg .u32 %one;
  ld.param.u64 %address, [shaded];
  cvta.to.global.u64 %address, %address;
  mov.u32 %one, 1;
  red.global.add.u32 [%address], %one;
  ret;
}
)";

__global__ void compose(const volatile int* shaded, float* image) {
  if (threadIdx.x == 0)
    while (*shaded == 0) __nanosleep(100);
  __syncthreads();
  image[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

CUfunction shade_of_plug_in() {
  CUmodule module;
  CUfunction shade;
  CHECK(cuModuleLoadData(&module, kPlugIn));
  CHECK(cuModuleGetFunction(&shade, module, "shade"));
  return shade;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  int *shaded = zeros<int>(1), *unused = zeros<int>(1);
  auto* image = zeros<float>(16 * 64);
  load(compose);
  const cudaStream_t first = stream_of_its_own(), second = stream_of_its_own();
  CUfunction shade = nullptr;
  if (fixed) {
    shade = shade_of_plug_in();
    void* arguments[] = {&unused};
    CHECK(cuLaunchKernel(shade, 1, 1, 1, 1, 1, 1, 0, second, arguments, nullptr));
    CHECK(cudaDeviceSynchronize());
  }
  compose<<<16, 64, 0, first>>>(shaded, image);
  CHECK(cudaGetLastError());
  usleep(50000);
  if (!fixed) shade = shade_of_plug_in();
  void* arguments[] = {&shaded};
  CHECK(cuLaunchKernel(shade, 1, 1, 1, 1, 1, 1, 0, second, arguments, nullptr));
  return finish();
}
