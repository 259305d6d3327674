// The clock of a process, which stands still while another process has the GPU.
//
// Blocks and hardware queues use this clock. Hosts, the driver and copy engines use the clock of
// the GPU, which never stops and is offset_ns_ ahead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "tbsched/program/timeline.h"

namespace tbsched {

class Clock {
 public:
  // Return the time by the process's own clock, and by the GPU's.
  int64_t now() const { return now_; }
  int64_t gpu_now() const { return now_ + offset_ns_; }
  // Convert times between the two clocks, with the offset of now. kNever stays.
  int64_t to_gpu(const int64_t own_ns) const {
    return own_ns == kNever ? kNever : own_ns + offset_ns_;
  }
  int64_t to_own(const int64_t gpu_ns) const {
    return gpu_ns == kNever ? kNever : gpu_ns - offset_ns_;
  }

  void advance_to(const int64_t own_ns) { now_ = own_ns; }
  // Stops the clock at `own_ns` while the GPU's clock is at `gpu_ns`.
  void stop(const int64_t own_ns, const int64_t gpu_ns) {
    now_ = own_ns;
    offset_ns_ = gpu_ns - own_ns;
    is_stopped_ = true;
  }
  // Resumes the clock at `own_ns` when the GPU's clock is at `gpu_ns`.
  void resume(const int64_t own_ns, const int64_t gpu_ns) {
    stop(own_ns, gpu_ns);
    is_stopped_ = false;
    if (offset_ns_ > (stops_.empty() ? 0 : stops_.back().offset_ns)) {
      stops_.push_back({own_ns, offset_ns_});
    }
  }

  bool is_stopped() const { return is_stopped_; }
  bool has_stopped() const { return !stops_.empty(); }
  // Converts the time of a begin to the GPU's clock: what begins at the instant of a stop begins
  // when the process resumes.
  int64_t began_ns(const int64_t own_ns) const {
    return own_ns + offset_before(std::ranges::upper_bound(stops_, own_ns, {}, &Stop::at_ns));
  }
  // Converts the time of an end to the GPU's clock: what ends at the instant of a stop ended before
  // it.
  int64_t ended_ns(const int64_t own_ns) const {
    return own_ns + offset_before(std::ranges::lower_bound(stops_, own_ns, {}, &Stop::at_ns));
  }

 private:
  struct Stop {
    int64_t at_ns;      // by the own clock
    int64_t offset_ns;  // offset from then on
  };

  // Returns the offset before the first stop that is not earlier than a time.
  int64_t offset_before(const std::vector<Stop>::const_iterator behind) const {
    return behind == stops_.begin() ? 0 : std::prev(behind)->offset_ns;
  }

  int64_t now_ = 0;
  int64_t offset_ns_ = 0;
  bool is_stopped_ = false;
  std::vector<Stop> stops_;
};

}  // namespace tbsched
