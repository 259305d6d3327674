// A module is made of PTX while a kernel waits for the kernel in it.
#include "begin.cuh"

const char* const kCode = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry open_gate(.param .u64 gate) {
  .reg .b32 %old;
  .reg .b64 %at;
  ld.param.u64 %at, [gate];
  cvta.to.global.u64 %at, %at;
  atom.global.exch.b32 %old, [%at], 1;
  ret;
}
)";

__global__ void stand_at_gate(const volatile int* gate, int* passed) {
  while (!*gate) {
  }
  *passed = 1;
}

int main(int argc, char** argv) {
  const bool fixed = begin(argc, argv);
  auto *gate = zeros<int>(1), *passed = zeros<int>(1);
  load(stand_at_gate);
  const auto waiting = stream_of_its_own(), opening = stream_of_its_own();
  CUmodule module;
  CUfunction open_gate;
  const auto load_code = [&] {
    CHECK(cuModuleLoadData(&module, kCode));
    CHECK(cuModuleGetFunction(&open_gate, module, "open_gate"));
    int registers;
    CHECK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, open_gate));
  };
  if (fixed) load_code();
  stand_at_gate<<<1, 1, 0, waiting>>>(gate, passed);
  CHECK(cudaGetLastError());
  if (!fixed) load_code();
  void* arguments[] = {&gate};
  CHECK(cuLaunchKernel(open_gate, 1, 1, 1, 1, 1, 1, 0, opening, arguments, nullptr));
  return finish();
}
