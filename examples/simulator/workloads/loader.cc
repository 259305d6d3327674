// Launches the kernels of a workload on GPGPU-Sim. Standard input has a line for each launch:
//
//   BLOCKS THREADS STREAM PRIORITY CYCLES...
//
// with the cycles of each block. Kernel k of the PTX is named kernel_k.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

extern "C" {
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int threads, uint3* thread, uint3* block, dim3* block_size, dim3* grid,
                            int* warp_size);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_memory,
                                     cudaStream_t stream);
}

struct Launch {
  int blocks, threads, stream, priority;
  unsigned* cycles;  // on the device
  std::string name;
  char stub;  // its address stands for the kernel
};

int main() {
  std::vector<Launch*> launches;
  void** const binary = __cudaRegisterFatBinary(nullptr);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    Launch* const launch = new Launch;
    words >> launch->blocks >> launch->threads >> launch->stream >> launch->priority;
    std::vector<unsigned> cycles;
    for (unsigned value; words >> value;) cycles.push_back(value);
    if (static_cast<int>(cycles.size()) != launch->blocks) {
      std::cerr << "loader: as many numbers of cycles as blocks are needed: " << line << '\n';
      return 2;
    }
    const size_t bytes = cycles.size() * sizeof(unsigned);
    cudaMalloc(reinterpret_cast<void**>(&launch->cycles), bytes);
    cudaMemcpy(launch->cycles, cycles.data(), bytes, cudaMemcpyHostToDevice);
    launch->name = "kernel_" + std::to_string(launches.size());
    char* const name = &launch->name[0];
    __cudaRegisterFunction(binary, &launch->stub, name, name, -1, nullptr, nullptr, nullptr,
                           nullptr, nullptr);
    launches.push_back(launch);
  }
  std::map<int, cudaStream_t> streams;
  for (Launch* const launch : launches) {
    if (streams.count(launch->stream)) continue;
    cudaStreamCreateWithPriority(&streams[launch->stream], cudaStreamNonBlocking, launch->priority);
  }
  for (Launch* const launch : launches) {
    void* arguments[] = {&launch->cycles};
    const cudaStream_t stream = streams[launch->stream];
    __cudaPushCallConfiguration(launch->blocks, launch->threads, 0, stream);
    cudaLaunchKernel(&launch->stub, launch->blocks, launch->threads, arguments, 0, stream);
  }
  cudaDeviceSynchronize();
}
