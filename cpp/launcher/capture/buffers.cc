#include "launcher/capture/buffers.h"

#include <algorithm>
#include <utility>

namespace tbsched::capture {
namespace {

constexpr size_t kMinRecords = 16;
constexpr size_t kAllocatedPerSize = 8;  // buffers of each size class, before the capture
constexpr size_t kRecordBytes = 256;     // the largest, of a kernel, has a few less
// Time between two requests for a buffer: if it is shorter, buffers are too small; if it is longer,
// too large.
constexpr std::chrono::milliseconds kMinLifetime{60};
constexpr std::chrono::milliseconds kMaxLifetime{250};

size_t bytes_of_class(const size_t size_class) {
  return (kMinRecords << size_class) * kRecordBytes;
}

}  // namespace

Buffers::Buffers() {
  for (size_t size_class = 0; size_class < kSizeClasses; ++size_class) {
    for (size_t count = 0; count < kAllocatedPerSize; ++count) {
      free_[size_class].push_back(std::make_unique<uint8_t[]>(bytes_of_class(size_class)));
    }
  }
}

Buffers::Buffer Buffers::take() {
  const std::lock_guard lock(mutex_);
  const auto lifetime = Clock::now() - std::exchange(last_taken_, Clock::now());
  if (lifetime < kMinLifetime) size_class_ = std::min(size_class_ + 1, kSizeClasses - 1);
  if (lifetime > kMaxLifetime) size_class_ = 0;
  Free& free = free_[size_class_];
  if (free.empty()) free.push_back(std::make_unique<uint8_t[]>(bytes_of_class(size_class_)));
  uint8_t* const bytes = free.back().release();
  free.pop_back();
  return {bytes, bytes_of_class(size_class_), kMinRecords << size_class_};
}

void Buffers::give_back(uint8_t* const bytes, const size_t size) {
  std::unique_ptr<uint8_t[]> buffer(bytes);
  const std::lock_guard lock(mutex_);
  for (size_t size_class = 0; size_class < kSizeClasses; ++size_class) {
    if (size == bytes_of_class(size_class)) free_[size_class].push_back(std::move(buffer));
  }
}

}  // namespace tbsched::capture
