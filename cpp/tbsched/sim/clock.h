// The clock of a process, which stands still while another process has the GPU.
//
// Blocks and hardware queues go by it. Hosts, the driver and copy engines go by that of the GPU,
// which never stops: it is late_ns() ahead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "tbsched/program/timeline.h"

namespace tbsched {

class Clock {
 public:
  int64_t now() const { return now_; }
  int64_t gpu_now() const { return now_ + late_ns_; }
  int64_t to_gpu(const int64_t own_ns) const {
    return own_ns == kNever ? kNever : own_ns + late_ns_;
  }
  int64_t to_own(const int64_t gpu_ns) const {
    return gpu_ns == kNever ? kNever : gpu_ns - late_ns_;
  }

  void go_to(const int64_t own_ns) { now_ = own_ns; }
  // It stands at its own instant while the GPU's clock goes on.
  void stand(const int64_t own_ns, const int64_t gpu_ns) {
    now_ = own_ns;
    late_ns_ = gpu_ns - own_ns;
  }
  // It goes on from its own instant at that of the GPU.
  void go_on(const int64_t own_ns, const int64_t gpu_ns) {
    stand(own_ns, gpu_ns);
    if (late_ns_ > (stops_.empty() ? 0 : stops_.back().late_ns)) {
      stops_.push_back({own_ns, late_ns_});
    }
  }

  bool has_stood() const { return !stops_.empty(); }
  // By the GPU's clock: what begins as the process is stopped begins when it goes on.
  int64_t began_ns(const int64_t own_ns) const {
    return own_ns + late_before(std::ranges::upper_bound(stops_, own_ns, {}, &Stop::at_ns));
  }
  // By the GPU's clock: what ends as the process is stopped has ended.
  int64_t ended_ns(const int64_t own_ns) const {
    return own_ns + late_before(std::ranges::lower_bound(stops_, own_ns, {}, &Stop::at_ns));
  }

 private:
  struct Stop {
    int64_t at_ns;    // by the own clock
    int64_t late_ns;  // from then on
  };

  int64_t late_before(const std::vector<Stop>::const_iterator behind) const {
    return behind == stops_.begin() ? 0 : std::prev(behind)->late_ns;
  }

  int64_t now_ = 0;
  int64_t late_ns_ = 0;
  std::vector<Stop> stops_;
};

}  // namespace tbsched
