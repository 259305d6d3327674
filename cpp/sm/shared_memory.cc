#include "sm/shared_memory.h"

#include <limits>

namespace tbsched {

SharedMemory::SharedMemory(const Layout layout)
    : layout_(layout), contiguous_(0, layout == Layout::circular) {}

int32_t SharedMemory::capacity(const int32_t bytes, const int32_t configured) const {
  if (bytes == 0) return std::numeric_limits<int32_t>::max();
  if (contiguous_.empty()) return (configured - used_) / bytes;
  // Algorithm 1 divides the largest gap; where memory was measured to be circular, all gaps count.
  return layout_ == Layout::circular ? contiguous_.pieces(bytes)
                                     : contiguous_.largest_gap() / bytes;
}

void SharedMemory::commit(const uint32_t owner, const int32_t bytes, const int32_t blocks,
                          const int32_t configured) {
  if (bytes == 0) return;
  if (used_ == 0) {
    contiguous_.reset(configured);
    first_owner_ = owner;
  } else if (layout_ != Layout::pooled) {
    if (contiguous_.empty()) contiguous_.allocate(first_owner_, used_, 1);
    contiguous_.allocate(owner, bytes, blocks);
  }
  used_ += bytes * blocks;
}

void SharedMemory::release(const uint32_t owner, const int32_t bytes, const int32_t blocks) {
  used_ -= bytes * blocks;
  contiguous_.release(owner);
}

}  // namespace tbsched
