// Gives a compiled kernel another register count and local memory, without compiling it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tbsched::cuda {

// Patches a cubin that holds one kernel. Throws std::invalid_argument: the image is no cubin, or
// `registers` is less than what the kernel's code uses, or more than 255.
std::vector<std::byte> patch(std::span<const std::byte> image, int32_t registers,
                             int32_t local_memory);

}  // namespace tbsched::cuda
