// What resident blocks hold of their SM, kept so that their release gives back exactly that.
#pragma once

#include <array>
#include <cstdint>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

// Of one block, or of several of a launch that came together and leave together. There is one for
// each block that is resident, or each SM, so that its members are no wider than they need be.
struct Footprint {
  int32_t sm = -1;
  uint32_t owner = 0;       // names their pieces where memory must be contiguous
  uint64_t warp_slots = 0;  // bit s: the slot whose %warpid is s
  std::array<uint8_t, kMaxProcessingBlocks> warps{};  // in each processing block
  uint8_t blocks = 0;
  uint8_t first_processing_block = 0;  // of their first warp, where warps go in turn
};

}  // namespace tbsched
