// The probe kernels as compiled at build time, one cubin per architecture and PTX for later ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tbsched::cuda {

struct ProbeImage {
  int32_t architecture;  // 90 for sm_90
  bool is_ptx;           // text, terminated by a zero byte, for this architecture or any later one
  bool dependent;        // triggers, or waits for what comes before in its stream
  std::span<const std::byte> bytes;
};

// Of each kernel ascending by architecture; its PTX comes last.
std::span<const ProbeImage> probe_images();

}  // namespace tbsched::cuda
