#include "tbsched/hardware/sm/registers.h"

#include <algorithm>

namespace tbsched {

RegisterFiles::RegisterFiles(const DeviceSpec& spec) {
  const int32_t registers = spec.registers_per_sm / spec.processing_blocks;
  std::fill_n(free_.begin(), spec.processing_blocks, registers);
  const Layout layout = spec.mechanisms.registers;
  if (layout == Layout::pooled) return;
  contiguous_.emplace(spec.processing_blocks,
                      ContiguousMemory(registers, layout == Layout::circular));
}

int32_t RegisterFiles::contiguous_capacity(const int32_t processing_block,
                                           const int32_t registers_per_warp,
                                           const int32_t max_warps) const {
  return std::min(max_warps, (*contiguous_)[processing_block].count_fitting(registers_per_warp));
}

void RegisterFiles::allocate_contiguous(const uint32_t owner, const int32_t registers_per_warp,
                                        const Warps& warps) {
  for (size_t i = 0; i < contiguous_->size(); ++i) {
    (*contiguous_)[i].allocate(owner, registers_per_warp, warps[i]);
  }
}

void RegisterFiles::release_contiguous(const uint32_t owner) {
  for (ContiguousMemory& memory : *contiguous_) memory.release(owner);
}

}  // namespace tbsched
