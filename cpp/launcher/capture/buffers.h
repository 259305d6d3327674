// Memory that CUPTI writes records into.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tbsched::capture {

// CUPTI returns a buffer once its last record is complete. So buffers are small while few records
// arrive: their contents are lost if the process is killed. They are large while many arrive: each
// buffer costs time of the thread that needs it. Thread-safe.
class Buffers {
 public:
  struct Buffer {
    uint8_t* bytes;
    size_t size;     // bytes
    size_t records;  // its capacity
  };

  // Allocates some buffers of each size, so that the program does not wait for new memory.
  Buffers();

  // Hands out a buffer. Buffers get larger while they are requested often, and small again once
  // they are not.
  Buffer take();
  // Keeps a buffer of `size` bytes for the next take() of that size.
  void give_back(uint8_t* bytes, size_t size);

 private:
  using Clock = std::chrono::steady_clock;
  // Buffers are reused: allocating memory costs more than writing records.
  using Free = std::vector<std::unique_ptr<uint8_t[]>>;
  static constexpr size_t kSizeClasses = 7;  // each twice as large as the one before

  std::mutex mutex_;
  std::array<Free, kSizeClasses> free_;  // by size class
  size_t size_class_ = 0;                // of the buffers that are handed out
  Clock::time_point last_taken_ = Clock::now();
};

}  // namespace tbsched::capture
