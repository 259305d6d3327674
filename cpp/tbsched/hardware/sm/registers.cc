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

int32_t RegisterFiles::pieces(const int32_t processing_block, const int32_t registers_per_warp,
                              const int32_t most) const {
  return std::min(most, (*contiguous_)[processing_block].pieces(registers_per_warp));
}

void RegisterFiles::allocate(const uint32_t owner, const int32_t registers_per_warp,
                             const Warps& warps) {
  for (size_t i = 0; i < contiguous_->size(); ++i) {
    (*contiguous_)[i].allocate(owner, registers_per_warp, warps[i]);
  }
}

void RegisterFiles::give_back(const uint32_t owner) {
  for (ContiguousMemory& memory : *contiguous_) memory.release(owner);
}

}  // namespace tbsched
