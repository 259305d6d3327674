// Runs work on many sequences in parallel.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tbsched/sim/interruption.h"

namespace tbsched {

// An interruption of work on several threads: the first one that is interrupted stops all.
class SharedInterruption {
 public:
  bool happened() const { return happened_; }
  // Calls `check_thread`, which only the first thread has. Throws in every thread once it has
  // thrown.
  void check(const Interruptible::Check& check_thread) {
    if (happened_) throw Stopped();
    try {
      if (check_thread) check_thread();
    } catch (...) {
      cause_ = std::current_exception();
      happened_ = true;
      throw;
    }
  }
  // Throws what the first thread's check threw; does nothing if it has not.
  void rethrow() const {
    if (happened_) std::rethrow_exception(cause_);
  }

 private:
  struct Stopped {};

  std::atomic<bool> happened_ = false;
  std::exception_ptr cause_;
};

// Calls work(k) for every k below `count` on `threads` threads. Rethrows the exception of the
// smallest k; a std::invalid_argument names it as "sequence k", or `item` k. An interruption of the
// calling thread ends the work of all.
inline void for_each_sequence(const size_t count, const int32_t threads,
                              const std::function<void(size_t k)>& work,
                              const std::string_view item = "sequence") {
  std::vector<std::exception_ptr> faults(count);
  std::atomic<size_t> next = 0;
  SharedInterruption interruption;
  const auto work_until_done = [&](const Interruptible::Check& check) {
    const Interruptible polls([&] { interruption.check(check); });
    for (size_t k = next++; k < count && !interruption.happened(); k = next++) {
      try {
        work(k);
      } catch (...) {
        faults[k] = std::current_exception();
      }
    }
  };
  {
    const Interruptible::Check check = Interruptible::check();
    std::counting_semaphore ended(0);
    std::vector<std::jthread> others;
    for (int32_t thread = 1; thread < threads; ++thread) {
      others.emplace_back([&] {
        work_until_done({});
        ended.release();
      });
    }
    work_until_done(check);
    for (size_t thread = 0; thread < others.size(); ++thread) {
      while (!ended.try_acquire_for(std::chrono::milliseconds(50))) {
        try {
          interruption.check(check);
        } catch (...) {  // rethrown as soon as the others have ended
        }
      }
    }
  }
  interruption.rethrow();
  for (size_t k = 0; k < count; ++k) {
    if (!faults[k]) continue;
    try {
      std::rethrow_exception(faults[k]);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string(item) + ' ' + std::to_string(k) + ": " +
                                  error.what());
    }
  }
}

}  // namespace tbsched
