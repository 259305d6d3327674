// What all programs share: how they begin, and how they check a call.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                    \
  do {                                                                                 \
    const auto code_ = static_cast<int>(call);                                         \
    if (code_ != 0) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, code_); \
      std::_Exit(3);                                                                   \
    }                                                                                  \
  } while (false)

// Waits until the file exists that HANGS_GO names, and returns whether the fixed variant is asked
// for. Nothing of CUDA is called before.
inline bool begin(int argc, char** argv) {
  if (const char* go = std::getenv("HANGS_GO"))
    while (access(go, F_OK) != 0) usleep(5000);
  return argc > 1 && std::strcmp(argv[1], "fixed") == 0;
}

// Loads a kernel before its first launch.
template <class Kernel>
void load(Kernel kernel) {
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, kernel));
}

// Allows a kernel so much dynamic shared memory, in bytes. This loads it, too.
template <class Kernel>
void allow(Kernel kernel, int bytes) {
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

// Zeroed memory of the GPU.
template <class T>
T* zeros(size_t count) {
  T* memory;
  CHECK(cudaMalloc(&memory, count * sizeof(T)));
  CHECK(cudaMemset(memory, 0, count * sizeof(T)));
  CHECK(cudaDeviceSynchronize());
  return memory;
}

// Zeroed memory of the host that the GPU reads and writes in place.
template <class T>
T* shared_with_host(size_t count) {
  T* memory;
  CHECK(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped));
  std::memset(memory, 0, count * sizeof(T));
  return memory;
}

inline cudaStream_t stream_of_its_own() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

// Waits for everything, and says that the program ended.
inline int finish() {
  CHECK(cudaDeviceSynchronize());
  std::puts("ended");
  return 0;
}
