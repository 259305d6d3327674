#include "tbsched/coresidency/sm/memory_gaps.h"

#include <algorithm>
#include <numeric>

#include "tbsched/hardware/sm/shared_memory.h"

namespace tbsched {

namespace {

constexpr int64_t kMaxReserved = 1 << 30;  // in bytes, for all launches

}  // namespace

void MemoryGaps::reserve(const int64_t bytes) {
  const auto added = static_cast<int32_t>(std::min(kMaxReserved - reserved_, bytes));
  reserved_ += added;
  arrived_bytes_ += added;
}

void MemoryGaps::commit(const int32_t bytes, const int32_t configured) {
  enter(bytes, configured);
  arrived_bytes_ += bytes;
}

void MemoryGaps::enter(const int32_t bytes, const int32_t configured) {
  if (bytes == 0) return;
  taken_ += bytes;
  ++blocks_;
  if (size_ != kNone && size_ != bytes) size_ = kMixed;
  limit_gaps(gaps_, configured);
}

void MemoryGaps::leave(const int32_t bytes, const int32_t configured) {
  if (bytes == 0) return;
  taken_ -= bytes;
  --blocks_;
  if (blocks_ == 0) {
    const int32_t reserved = reserved_;
    *this = MemoryGaps{};
    arrived_bytes_ = reserved;
    reserved_ = reserved;
    return;
  }
  size_ = size_ == kNone || size_ == bytes ? bytes : kMixed;
  limit_gaps(gaps_ + 1, configured);
}

void MemoryGaps::limit_gaps(const int32_t max_gaps, const int32_t configured) {
  gaps_ = std::min(max_gaps, blocks_);
  if (size_ > 0) gaps_ = std::min(gaps_, 1 + (configured - taken_) / size_);
}

int32_t MemoryGaps::guaranteed_room(const int32_t bytes, const int32_t configured,
                                    const int32_t unit) const {
  const int32_t wasted =
      bytes - (size_ > 0 ? std::gcd(size_, bytes) : unit);  // upper bound, per gap
  const int64_t free = configured - taken_ - int64_t{gaps_ - 1} * wasted;
  return std::max(guaranteed_fits(bytes, free, 1, unit),
                  std::max(0, configured - arrived_bytes_) / bytes);
}

}  // namespace tbsched
