// CUDA events that were made with timing: their records write a time stamp.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "launcher/capture/cupti.h"

namespace tbsched::capture {

// Events with timing that the program has made since the capture began. Thread-safe.
class TimedEvents {
 public:
  // Keeps the event that a call has made, if it has timing. The call has succeeded.
  void after_call(CUpti_CallbackId id, const void* parameters);

  // Forgets the event that a call is about to destroy: later, another event may have its handle.
  void before_call(CUpti_CallbackId id, const void* parameters);

  // Returns whether an event has timing. `event`: the driver's handle.
  bool contains(uint64_t event) const;

  // Returns true once for each event with timing.
  bool take_new(uint64_t event);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, bool> is_taken_;  // by the driver's handle
  std::atomic<bool> has_any_ = false;            // a program without them need not lock
};

}  // namespace tbsched::capture
