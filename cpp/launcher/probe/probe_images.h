// The probe kernels as compiled at build time, one cubin per architecture and PTX for later ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tbsched::cuda {

// What a block does besides waiting.
enum class ProbeKind : uint8_t {
  plain,      // nothing
  dependent,  // triggers, or waits for the work before it in its stream
  meeting,    // waits for the blocks that it meets
  body,       // writes where its run does, and may decide whether the body runs again
};

struct ProbeImage {
  int32_t architecture;  // 90 for sm_90
  bool is_ptx;           // text, terminated by a zero byte, for this architecture or any later one
  ProbeKind kind;
  std::span<const std::byte> bytes;
};

// By kind, ascending by architecture; the PTX of a kind comes last.
std::span<const ProbeImage> probe_images();

}  // namespace tbsched::cuda
