// Reads a compiled kernel's use of resources from its cubin, and changes its numbers of registers
// and local memory without compiling it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tbsched::cuda {

// Returns a copy of a cubin of one kernel with these registers and bytes of local memory per
// thread. Throws std::invalid_argument if the image is no cubin, or `registers` is less than what
// the kernel's code uses, or more than 255.
std::vector<std::byte> patch(std::span<const std::byte> image, int32_t registers,
                             int32_t local_memory);

// A parameter of a kernel.
struct Parameter {
  uint16_t offset;  // bytes from the first one
  uint16_t size;    // bytes
  bool operator==(const Parameter&) const = default;
};

// What a kernel uses. Sizes are in bytes.
struct KernelUsage {
  std::string name;
  int32_t registers = 0;             // per thread
  int32_t static_shared_memory = 0;  // without what the driver reserves
  int32_t local_memory = 0;          // per thread
  int32_t cluster = 0;               // blocks, as compiled in; 0: none
  std::vector<Parameter> parameters;
  int32_t parameters_at = 0;  // offset of the first in constant bank 0; 0: unknown
  uint64_t code_at = 0;       // offset of its instructions in the cubin
  uint64_t code_size = 0;
};

// Returns what the kernels of a cubin use. Throws std::invalid_argument if the image is no cubin.
std::vector<KernelUsage> usage(std::span<const std::byte> image);

}  // namespace tbsched::cuda
