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
    size_t size;
    size_t records;  // its capacity
  };

  // Allocates some of each size, so that the program does not wait for new memory.
  Buffers();

  Buffer take();
  void give_back(uint8_t* bytes, size_t size);

 private:
  using Clock = std::chrono::steady_clock;
  // Buffers are reused: allocating memory costs more than writing records.
  using Free = std::vector<std::unique_ptr<uint8_t[]>>;
  static constexpr size_t kSizes = 7;  // each twice as large as the one before

  std::mutex mutex_;
  std::array<Free, kSizes> free_;
  size_t size_ = 0;  // index of the size in use
  Clock::time_point last_taken_ = Clock::now();
};

}  // namespace tbsched::capture
