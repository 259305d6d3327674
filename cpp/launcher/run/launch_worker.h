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

  // Adds a call, which the thread makes after those before it.
  void submit(std::function<void()> call);
  // Drops calls that have not begun, and an error that was not rethrown.
  void cancel();
  // Returns whether a call has not returned yet.
  bool is_busy() const;
  // Returns the number of calls that have returned.
  uint64_t returned() const;
  // Rethrows the exception that a call has thrown, once; does nothing if there is none.
  void rethrow();

 private:
  // Thread: makes the calls in order, until it is stopped.
  void make_calls(const std::stop_token& stop);
  // Spins for a while until a call is added. The next launch follows in microseconds: waking up a
  // thread takes longer.
  void spin_for_call() const;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::function<void()>> calls_;
  std::atomic<bool> called_ = false;  // a call was added since the last one was taken
  bool calling_ = false;              // a call is in progress
  uint64_t returned_ = 0;
  std::exception_ptr error_;  // of a call; null: none
  std::jthread thread_;
};

}  // namespace tbsched::cuda
