// Reads a compiled kernel's use of resources from its cubin, and changes its numbers of registers
// and local memory without compiling it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tbsched::cuda {

// Patches a cubin that holds one kernel. Throws std::invalid_argument: the image is no cubin, or
// `registers` is less than what the kernel's code uses, or more than 255.
std::vector<std::byte> patch(std::span<const std::byte> image, int32_t registers,
                             int32_t local_memory);

// A parameter of a kernel: its place among them, and its size.
struct Parameter {
  uint16_t offset;
  uint16_t size;
  bool operator==(const Parameter&) const = default;
};

// Sizes in bytes, of static shared memory without what the driver reserves.
struct KernelUsage {
  std::string name;
  int32_t registers = 0;
  int32_t static_shared_memory = 0;
  int32_t local_memory = 0;  // per thread
  int32_t cluster = 0;       // blocks, as compiled in; 0: none
  std::vector<Parameter> parameters;
  int32_t parameters_at = 0;  // where they begin in constant bank 0; 0: unknown
  uint64_t code_at = 0;       // its instructions, in the cubin
  uint64_t code_size = 0;
};

// Returns the resources of the kernels of a cubin. Throws std::invalid_argument: the image is no
// cubin.
std::vector<KernelUsage> usage(std::span<const std::byte> image);

}  // namespace tbsched::cuda
