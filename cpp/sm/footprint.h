// What a resident block holds of its SM, kept so that its release gives back exactly that.
#pragma once

#include <array>
#include <cstdint>

#include "model/device_spec.h"

namespace tbsched {

using WarpsPerProcessingBlock = std::array<int16_t, kMaxProcessingBlocks>;

struct Footprint {
  int32_t sm = -1;
  uint32_t owner = 0;  // names the block's pieces where memory must be contiguous
  WarpsPerProcessingBlock warps{};
};

}  // namespace tbsched
