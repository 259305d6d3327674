// What a resident block holds of its SM, kept so that its release gives back exactly that.
#pragma once

#include <cstdint>

namespace tbsched {

struct Footprint {
  int32_t sm = -1;
  uint32_t owner = 0;                  // names the block's pieces where memory must be contiguous
  uint64_t warp_slots = 0;             // bit s: the slot whose %warpid is s
  int32_t first_processing_block = 0;  // of the block's first warp, where warps go in turn
};

}  // namespace tbsched
