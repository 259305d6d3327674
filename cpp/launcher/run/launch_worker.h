// A thread for launch calls that may block. A launch that needs more local memory than any before
// blocks its caller until the GPU is idle; another thread must be able to make it idle.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tbsched::cuda {

class LaunchWorker {
 public:
  LaunchWorker();
  ~LaunchWorker();  // waits for the call in progress
  LaunchWorker(const LaunchWorker&) = delete;
  LaunchWorker& operator=(const LaunchWorker&) = delete;

  void submit(std::function<void()> call);
  // Drops calls that have not begun, and an error that was not rethrown.
  void cancel();
  bool busy() const;
  // Returns the number of calls that have returned.
  uint64_t returned() const;
  // Rethrows the exception of a call, once.
  void rethrow();

 private:
  void work(const std::stop_token& stop);
  // Spins for the next launch, which follows in microseconds: waking up a thread takes longer.
  void expect_a_call() const;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::function<void()>> calls_;
  std::atomic<bool> called_ = false;  // since the last call was taken
  bool calling_ = false;
  uint64_t returned_ = 0;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace tbsched::cuda
