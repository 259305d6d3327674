// What resident blocks hold of their SM, kept so that their release gives back exactly that.
#pragma once

#include <array>
#include <cstdint>

#include "model/device_spec.h"

namespace tbsched {

// Of one block, or of several of a launch that came together and leave together.
struct Footprint {
  int32_t sm = -1;
  int32_t blocks = 0;
  uint32_t owner = 0;                  // names their pieces where memory must be contiguous
  uint64_t warp_slots = 0;             // bit s: the slot whose %warpid is s
  int32_t first_processing_block = 0;  // of their first warp, where warps go in turn
  std::array<uint8_t, kMaxProcessingBlocks> warps{};  // in each processing block
};

}  // namespace tbsched
