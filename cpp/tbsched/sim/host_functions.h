// The thread of the driver that calls host functions (cudaLaunchHostFunc).
//
// An example: functions of two streams may begin at the same time, and take 100 us each. The second
// one begins when the first has returned, 2 us later.
//
// The rules:
//   1. The functions of a process run one after the other, in the order in which they may begin.
//   2. The thread sleeps while there is nothing to call. To wake it takes longer than to go on, and
//      longest if the GPU has to.
//
// Source: traces hosts/events-h200; docs/explanation/hosts.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

class HostFunctions {
 public:
  // The device outlives it.
  explicit HostFunctions(const DeviceSpec& spec) : spec_(spec) {}

  // Calls a function of this duration that may begin now, and returns when it begins. `has_waited`:
  // for work of the GPU. Call it in the order of time.
  int64_t call(const int64_t now, const int64_t duration_ns, const bool has_waited) {
    const int64_t asleep_ns =
        now + (has_waited ? spec_.host_function_latency_ns : spec_.host_function_direct_ns);
    const int64_t next_ns = std::max(now, free_ns_ + spec_.host_function_turn_ns);
    const bool is_awake =
        now <= free_ns_ + spec_.host_function_return_ns + spec_.completion_latency_ns;
    const bool goes_on = spec_.mechanisms.host_functions_in_turn && is_awake;
    const int64_t begin_ns = goes_on ? next_ns : asleep_ns;
    free_ns_ = begin_ns + duration_ns;
    return begin_ns;
  }

 private:
  const DeviceSpec& spec_;
  int64_t free_ns_ =
      std::numeric_limits<int64_t>::min() / 2;  // since when the thread has nothing to do
};

}  // namespace tbsched
