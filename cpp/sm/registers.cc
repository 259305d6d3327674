#include "sm/registers.h"

namespace tbsched {

RegisterFile::RegisterFile(const int32_t registers, const Layout layout) : free_(registers) {
  if (layout != Layout::pooled) contiguous_.emplace(registers, layout == Layout::circular);
}

int32_t RegisterFile::capacity(const int32_t registers_per_warp) const {
  return contiguous_ ? contiguous_->pieces(registers_per_warp) : free_ / registers_per_warp;
}

void RegisterFile::commit(const uint32_t owner, const int32_t registers_per_warp,
                          const int32_t warps) {
  free_ -= registers_per_warp * warps;
  if (!contiguous_) return;
  for (int32_t warp = 0; warp < warps; ++warp) contiguous_->allocate(owner, registers_per_warp);
}

void RegisterFile::release(const uint32_t owner, const int32_t registers_per_warp,
                           const int32_t warps) {
  free_ += registers_per_warp * warps;
  if (contiguous_) contiguous_->release(owner);
}

}  // namespace tbsched
