// The thread that makes the launch calls that may block. A launch that needs more local memory than
// any before it blocks its caller until the GPU is idle; the thread that can make it idle must not
// be that one.
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
  ~LaunchWorker();  // waits for the call under way
  LaunchWorker(const LaunchWorker&) = delete;
  LaunchWorker& operator=(const LaunchWorker&) = delete;

  void submit(std::function<void()> call);
  // Drops the calls that have not begun, and an error that nobody asked for.
  void cancel();
  bool busy() const;
  // Calls that have returned so far.
  uint64_t returned() const;
  // Throws what a call threw, once.
  void rethrow();

 private:
  void work(const std::stop_token& stop);
  // The next launch follows in microseconds, and waking a thread up takes longer than the call.
  void expect_a_call() const;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::function<void()>> calls_;
  std::atomic<bool> called_ = false;  // since a call was last taken
  bool calling_ = false;
  uint64_t returned_ = 0;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace tbsched::cuda
