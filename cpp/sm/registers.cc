#include "sm/registers.h"

#include <algorithm>

namespace tbsched {

RegisterFiles::RegisterFiles(const int32_t processing_blocks, const int32_t registers,
                             const Layout layout) {
  std::fill_n(free_.begin(), processing_blocks, registers);
  if (layout == Layout::pooled) return;
  contiguous_.assign(processing_blocks, Arena(registers, layout == Layout::circular));
}

int32_t RegisterFiles::capacity(const int32_t processing_block, const int32_t registers_per_warp,
                                const int32_t most) const {
  if (!contiguous_.empty()) {
    return std::min(most, contiguous_[processing_block].pieces(registers_per_warp));
  }
  // Spares the division where registers do not bind.
  const int32_t free = free_[processing_block];
  return free >= most * registers_per_warp ? most : free / registers_per_warp;
}

void RegisterFiles::commit(const int32_t processing_block, const uint32_t owner,
                           const int32_t registers_per_warp, const int32_t warps) {
  free_[processing_block] -= registers_per_warp * warps;
  if (!contiguous_.empty()) {
    contiguous_[processing_block].allocate(owner, registers_per_warp, warps);
  }
}

void RegisterFiles::release(const int32_t processing_block, const uint32_t owner,
                            const int32_t registers_per_warp, const int32_t warps) {
  free_[processing_block] += registers_per_warp * warps;
  if (!contiguous_.empty()) contiguous_[processing_block].release(owner);
}

}  // namespace tbsched
