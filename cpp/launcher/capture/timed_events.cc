#include "launcher/capture/timed_events.h"

#include <cuda.h>

#include <utility>

#include "launcher/capture/driver.h"

namespace tbsched::capture {

void TimedEvents::after_call(const CUpti_CallbackId id, const void* const parameters) {
  if (id != CUPTI_DRIVER_TRACE_CBID_cuEventCreate) return;
  const auto& given = *static_cast<const cuEventCreate_params*>(parameters);
  if ((given.Flags & CU_EVENT_DISABLE_TIMING) != 0) return;
  const std::lock_guard lock(mutex_);
  is_taken_[handle_value(*given.phEvent)] = false;
  has_any_ = true;
}

void TimedEvents::before_call(const CUpti_CallbackId id, const void* const parameters) {
  if (id != CUPTI_DRIVER_TRACE_CBID_cuEventDestroy &&
      id != CUPTI_DRIVER_TRACE_CBID_cuEventDestroy_v2) {
    return;
  }
  const std::lock_guard lock(mutex_);
  is_taken_.erase(handle_value(static_cast<const cuEventDestroy_params*>(parameters)->hEvent));
}

bool TimedEvents::contains(const uint64_t event) const {
  if (!has_any_.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(mutex_);
  return is_taken_.contains(event);
}

bool TimedEvents::take_new(const uint64_t event) {
  const std::lock_guard lock(mutex_);
  const auto known = is_taken_.find(event);
  return known != is_taken_.end() && !std::exchange(known->second, true);
}

}  // namespace tbsched::capture
