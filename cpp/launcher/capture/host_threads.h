// Threads of the program that may still answer the GPU, though nothing of CUDA says so.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tbsched::capture {

// Threads that call nothing of CUDA, by the numbers that the operating system gives them.
struct OtherThreads {
  std::vector<int64_t> busy;    // they ran for most of the time in which they had a CPU or slept
  std::vector<int64_t> asleep;  // they are since then in one sleep that ends by the clock
};

// Compares what threads did between two looks. Not thread-safe.
class HostThreads {
 public:
  // `passed_over`: threads that call CUDA, and those of the capture.
  OtherThreads look(std::span<const int32_t> passed_over, uint64_t now_ns);

 private:
  struct Seen {
    uint64_t ran_ns = 0;
    uint64_t waited_ns = 0;  // for a CPU
    uint64_t stretches = 0;  // how often it was given a CPU
  };

  std::unordered_map<int32_t, Seen> seen_;
  uint64_t looked_ns_ = 0;
};

}  // namespace tbsched::capture
