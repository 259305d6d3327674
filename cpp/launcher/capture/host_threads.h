// Threads of the program that may still answer the GPU, though nothing of CUDA says so.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tbsched::capture {

// Threads that call nothing of CUDA, by the operating system's thread ids.
struct OtherThreads {
  std::vector<int64_t> busy;    // ran for most of the time in which they did not wait for a CPU
  std::vector<int64_t> asleep;  // have been in one timed sleep since the previous compare()
};

// Compares what threads of this process do between two calls of compare(). Not thread-safe.
class HostThreads {
 public:
  // Returns the threads that were busy or asleep since the previous compare(). `excluded`: threads
  // that call CUDA, and those of the capture.
  OtherThreads compare(std::span<const int32_t> excluded, uint64_t now_ns);

 private:
  struct SchedulerStatistics {
    uint64_t ran_ns = 0;      // on a CPU
    uint64_t waited_ns = 0;   // for a CPU
    uint64_t timeslices = 0;  // how often the thread was given a CPU
  };

  std::unordered_map<int32_t, SchedulerStatistics> previous_;  // by thread id
  uint64_t compared_ns_ = 0;
};

}  // namespace tbsched::capture
