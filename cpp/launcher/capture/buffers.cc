#include "launcher/capture/buffers.h"

#include <algorithm>
#include <utility>

namespace tbsched::capture {
namespace {

constexpr size_t kFewestRecords = 16;
constexpr size_t kMadeBefore = 8;     // of each size
constexpr size_t kRecordBytes = 256;  // the largest, of a kernel, has a few less
// A buffer that lasts less is too small, one that lasts more is too large.
constexpr std::chrono::milliseconds kShortest{60};
constexpr std::chrono::milliseconds kLongest{250};

size_t bytes_of(const size_t size) { return (kFewestRecords << size) * kRecordBytes; }

}  // namespace

Buffers::Buffers() {
  for (size_t size = 0; size < kSizes; ++size) {
    for (size_t each = 0; each < kMadeBefore; ++each) {
      free_[size].push_back(std::make_unique<uint8_t[]>(bytes_of(size)));
    }
  }
}

Buffers::Buffer Buffers::take() {
  const std::lock_guard lock(mutex_);
  const auto lasted = Clock::now() - std::exchange(last_taken_, Clock::now());
  if (lasted < kShortest) size_ = std::min(size_ + 1, kSizes - 1);
  if (lasted > kLongest) size_ = 0;
  Free& free = free_[size_];
  if (free.empty()) free.push_back(std::make_unique<uint8_t[]>(bytes_of(size_)));
  uint8_t* const bytes = free.back().release();
  free.pop_back();
  return {bytes, bytes_of(size_), kFewestRecords << size_};
}

void Buffers::give_back(uint8_t* const bytes, const size_t size) {
  std::unique_ptr<uint8_t[]> buffer(bytes);
  const std::lock_guard lock(mutex_);
  for (size_t each = 0; each < kSizes; ++each) {
    if (size == bytes_of(each)) free_[each].push_back(std::move(buffer));
  }
}

}  // namespace tbsched::capture
