#include "tbsched/hardware/sm/shared_memory.h"

#include <algorithm>
#include <limits>

namespace tbsched {

int32_t SharedMemory::capacity(const DeviceSpec& spec, const int32_t bytes,
                               const int32_t configured) const {
  if (bytes == 0) return std::numeric_limits<int32_t>::max();
  if (!tracks_pieces()) return (configured - used_) / bytes;
  // Algorithm 1 divides the largest gap; in memory that was measured to be circular, all gaps
  // count.
  return spec.mechanisms.shared_memory == Layout::circular ? contiguous_->count_fitting(bytes)
                                                           : contiguous_->largest_gap() / bytes;
}

void SharedMemory::commit(const DeviceSpec& spec, const uint32_t owner, const int32_t bytes,
                          const int32_t blocks, const int32_t configured) {
  if (bytes == 0) return;
  const Layout layout = spec.mechanisms.shared_memory;
  if (used_ == 0) {
    first_owner_ = owner;
  } else if (layout != Layout::pooled) {
    if (!contiguous_) {
      contiguous_.emplace(0, layout == Layout::circular, spec.mechanisms.lowest_gap_first);
    }
    if (contiguous_->empty()) {
      // The configuration is the first owner's too: an SM keeps it until it is idle.
      contiguous_->reset(configured);
      contiguous_->allocate(first_owner_, used_, 1);
    }
    contiguous_->allocate(owner, bytes, blocks);
  }
  used_ += bytes * blocks;
}

void SharedMemory::release(const uint32_t owner, const int32_t bytes, const int32_t blocks) {
  used_ -= bytes * blocks;
  if (contiguous_) contiguous_->release(owner);
}

std::vector<Extent> SharedMemory::pieces_of(const DeviceSpec& spec, const uint32_t owner) const {
  if (spec.mechanisms.shared_memory == Layout::pooled || used_ == 0) return {};
  if (tracks_pieces()) return contiguous_->pieces_of(owner);
  if (owner != first_owner_) return {};
  return {{0, used_}};
}

int32_t guaranteed_fits(const int32_t bytes, const int64_t free, const int64_t gaps,
                        const int32_t unit) {
  const int64_t usable = std::max(int64_t{0}, free - gaps * (bytes - unit));
  return static_cast<int32_t>((usable + bytes - 1) / bytes);
}

}  // namespace tbsched
