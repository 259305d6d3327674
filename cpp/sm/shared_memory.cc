#include "sm/shared_memory.h"

#include <limits>

namespace tbsched {

SharedMemory::SharedMemory(const Layout layout) : layout_(layout) {}

int32_t SharedMemory::capacity(const int32_t bytes, const int32_t configured) const {
  if (bytes == 0) return std::numeric_limits<int32_t>::max();
  if (!contiguous_) return (configured - used_) / bytes;
  // Algorithm 1 divides the largest gap; where memory was measured to be circular, all gaps count.
  return layout_ == Layout::circular ? contiguous_->pieces(bytes)
                                     : contiguous_->largest_gap() / bytes;
}

void SharedMemory::commit(const uint32_t owner, const int32_t bytes, const int32_t configured) {
  if (bytes == 0) return;
  if (layout_ != Layout::pooled && !contiguous_) {
    contiguous_.emplace(configured, layout_ == Layout::circular);
  }
  used_ += bytes;
  if (contiguous_) contiguous_->allocate(owner, bytes);
}

void SharedMemory::release(const uint32_t owner, const int32_t bytes) {
  used_ -= bytes;
  if (contiguous_) contiguous_->release(owner);
  if (used_ == 0) contiguous_.reset();
}

}  // namespace tbsched
