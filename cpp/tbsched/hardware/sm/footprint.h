// The resources that resident blocks hold on their SM. Their release returns exactly these.
#pragma once

#include <array>
#include <cstdint>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

// A footprint is of one block, or of several blocks of a launch that are placed and leave together.
// There is one for each resident block or each SM, so its members are as narrow as possible.
struct Footprint {
  int32_t sm = -1;
  uint32_t owner = 0;       // owner of their pieces where memory must be contiguous
  uint64_t warp_slots = 0;  // bit s: the slot whose %warpid is s
  std::array<uint8_t, kMaxProcessingBlocks> warps{};  // in each processing block
  uint8_t blocks = 0;
  uint8_t first_processing_block = 0;  // of their first warp, if warps go in turn
};

}  // namespace tbsched
