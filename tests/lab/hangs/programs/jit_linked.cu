// A kernel is linked from PTX at run time and loaded, while another waits for it.
#include "begin.cuh"

const char kPtx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry publish(.param .u64 flag)
{
  .reg .u64 %address;
  .reg .u32 %one;
  ld.param.u64 %address, [flag];
  cvta.to.global.u64 %address, %address;
  mov.u32 %one, 1;
  st.global.u32 [%address], %one;
  ret;
}
)";

__global__ void wait_for_plugin(const volatile int* flag, int* out) {
  while (*flag == 0) __nanosleep(100);
  *out = 1;
}

CUfunction link_plugin() {
  CUlinkState state;
  CHECK(cuLinkCreate(0, nullptr, nullptr, &state));
  CHECK(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(kPtx), sizeof kPtx, "plugin.ptx",
                      0, nullptr, nullptr));
  void* cubin;
  size_t size;
  CHECK(cuLinkComplete(state, &cubin, &size));
  CUmodule module;
  CHECK(cuModuleLoadData(&module, cubin));
  CHECK(cuLinkDestroy(state));
  CUfunction function;
  CHECK(cuModuleGetFunction(&function, module, "publish"));
  return function;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *flag = zeros<int>(1), *out = zeros<int>(1);
  load(wait_for_plugin);
  CUfunction publish = nullptr;
  void* arguments[] = {&flag};
  if (fixed) {
    publish = link_plugin();
    CHECK(cuFuncLoad(publish));
  }
  wait_for_plugin<<<1, 1, 0, stream_of_its_own()>>>(flag, out);
  CHECK(cudaGetLastError());
  usleep(100000);
  if (!fixed) publish = link_plugin();
  CHECK(cuLaunchKernel(publish, 1, 1, 1, 1, 1, 1, 0, stream_of_its_own(), arguments, nullptr));
  return finish();
}
