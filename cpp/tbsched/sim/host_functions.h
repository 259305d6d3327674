// The thread of the driver that calls host functions (cudaLaunchHostFunc).
//
// An example: functions of two streams may begin at the same time, and take 100 us each. The second
// one begins when the first has returned, 2 us later.
//
// The rules:
//   1. The functions of a process run one after the other. Whenever the thread takes the next one,
//      it takes the one that was issued first, of those that may begin. While it wakes up, it
//      sees one that the GPU enables as late as it wakes up later because of the GPU.
//   2. The thread sleeps while there is nothing to call. To wake it takes longer than to go on, and
//      longest if the GPU has to.
//
// Source: traces hosts/events-h200; docs/explanation/hosts.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/hardware/device_spec.h"

namespace tbsched {

class HostFunctions {
 public:
  // The device outlives it.
  explicit HostFunctions(const DeviceSpec& spec) : spec_(spec) {}

  // When a function begins, as far as is known.
  struct Begin {
    int32_t operation;
    int64_t duration_ns;
    int64_t begin_ns;
    bool wakes;  // the thread
  };

  // Calls the function of an operation that may begin now. `has_waited`: for work of the GPU.
  // Returns when it begins, and when the functions begin that were issued after it and so begin
  // later than before. Call it in the order of time.
  std::span<const Begin> call(const int64_t now, const int32_t operation, const int64_t duration_ns,
                              const bool has_waited) {
    const int64_t asleep_ns =
        now + (has_waited ? spec_.host_function_latency_ns : spec_.host_function_direct_ns);
    const int64_t next_ns = std::max(now, free_ns_ + spec_.host_function_turn_ns);
    const bool is_awake =
        now <= free_ns_ + spec_.host_function_return_ns + spec_.completion_latency_ns;
    const bool continues = spec_.mechanisms.host_functions_in_turn && is_awake;
    std::erase_if(ahead_, [&](const Begin& other) { return !continues || other.begin_ns <= now; });
    const int64_t seen_ns =
        now + (has_waited ? spec_.host_function_latency_ns - spec_.host_function_direct_ns : 0);
    const auto is_behind = [&](const Begin& other) {
      return other.operation > operation && (!other.wakes || seen_ns <= other.begin_ns);
    };
    const auto later = std::ranges::find_if(ahead_, is_behind);
    Begin begin{operation, duration_ns, continues ? next_ns : asleep_ns, !continues};
    if (later != ahead_.end()) {
      begin.begin_ns = later->begin_ns;
      begin.wakes = std::exchange(later->wakes, false);
    }
    const auto inserted = ahead_.insert(later, begin);
    const std::span changed(inserted, ahead_.end());
    for (Begin& delayed : changed.subspan(1)) {
      const Begin& before = *(&delayed - 1);
      delayed.begin_ns = before.begin_ns + before.duration_ns + spec_.host_function_turn_ns;
    }
    free_ns_ = ahead_.back().begin_ns + ahead_.back().duration_ns;
    return changed;
  }

 private:
  const DeviceSpec& spec_;
  std::vector<Begin> ahead_;  // have not begun; in the order in which they begin
  int64_t free_ns_ =
      std::numeric_limits<int64_t>::min() / 2;  // since when the thread has nothing to do
};

}  // namespace tbsched
