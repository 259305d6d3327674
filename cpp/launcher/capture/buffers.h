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

// A buffer leaves CUPTI once its last record is complete. So it is small where few records come:
// what it holds is lost if the process is killed. It is large where many come: each one costs the
// thread that needs it. For any number of threads.
class Buffers {
 public:
  struct Buffer {
    uint8_t* bytes;
    size_t size;
    size_t records;  // the most that it is for
  };

  // Makes some of each size, so that the program does not wait for new memory.
  Buffers();

  Buffer take();
  void give_back(uint8_t* bytes, size_t size);

 private:
  using Clock = std::chrono::steady_clock;
  // New memory costs more than records: buffers are used again.
  using Free = std::vector<std::unique_ptr<uint8_t[]>>;
  static constexpr size_t kSizes = 7;  // each twice the one before

  std::mutex mutex_;
  std::array<Free, kSizes> free_;
  size_t size_ = 0;  // which one is taken
  Clock::time_point last_taken_ = Clock::now();
};

}  // namespace tbsched::capture
