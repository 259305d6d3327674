// A library of kernels is opened by cuLibraryLoadData at the start, and its kernel is got and
// launched when another one waits for it.
#include "begin.cuh"

const char kPtx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry signal(.param .u64 flag)
{
  .reg .u64 %address;
  ld.param.u64 %address, [flag];
  cvta.to.global.u64 %address, %address;
  st.global.u32 [%address], 1;
  ret;
}
.visible .entry scale(.param .u64 values)
{
  .reg .u64 %address;
  .reg .f32 %value;
  ld.param.u64 %address, [values];
  cvta.to.global.u64 %address, %address;
  ld.global.f32 %value, [%address];
  add.f32 %value, %value, %value;
  st.global.f32 [%address], %value;
  ret;
}
)";

__global__ void wait_for_signal(const volatile int* flag, int* out) {
  while (*flag == 0) {
  }
  *out = 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *flag = zeros<int>(1), *out = zeros<int>(1);
  load(wait_for_signal);
  CUlibrary library;
  CHECK(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  const auto get = [&] {
    CUkernel kernel;
    CUfunction function;
    CHECK(cuLibraryGetKernel(&kernel, library, "signal"));
    CHECK(cuKernelGetFunction(&function, kernel));
    return function;
  };
  CUfunction signal = nullptr;
  if (fixed) {
    signal = get();
    CHECK(cuFuncLoad(signal));
  }
  wait_for_signal<<<1, 1, 0, stream_of_its_own()>>>(flag, out);
  CHECK(cudaGetLastError());
  usleep(100000);
  if (!fixed) signal = get();
  void* arguments[] = {&flag};
  CHECK(cuLaunchKernel(signal, 1, 1, 1, 1, 1, 1, 0, stream_of_its_own(), arguments, nullptr));
  return finish();
}
