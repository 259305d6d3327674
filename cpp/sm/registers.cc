#include "sm/registers.h"

#include <algorithm>

namespace tbsched {

RegisterFiles::RegisterFiles(const DeviceSpec& spec) {
  const int32_t registers = spec.registers_per_sm / spec.processing_blocks;
  std::fill_n(free_.begin(), spec.processing_blocks, registers);
  const Layout layout = spec.mechanisms.registers;
  if (layout == Layout::pooled) return;
  contiguous_.emplace(spec.processing_blocks, Arena(registers, layout == Layout::circular));
}

int32_t RegisterFiles::pieces(const int32_t processing_block, const int32_t registers_per_warp,
                              const int32_t most) const {
  return std::min(most, (*contiguous_)[processing_block].pieces(registers_per_warp));
}

}  // namespace tbsched
