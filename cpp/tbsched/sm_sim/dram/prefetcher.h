// Opportunistic prefetching: reads lines of open rows that have not been requested.
#pragma once

#include <cstdint>

#include "tbsched/sm_sim/config.h"
#include "tbsched/sm_sim/dram/bank.h"

namespace tbsched::sm_sim {

// The prefetcher of a controller.
class Prefetcher {
 public:
  Prefetcher(const Config& config, const bool enabled)
      : config_(config), columns_(config.row_bytes / config.access_bytes()), enabled_(enabled) {}

  // Notes a request that arrives; `waiting` requests are at the controller now.
  void count_arrival(const int64_t waiting) {
    mean_ += ((waiting << kFraction) - mean_) >> config_.queue_mean_shift;
  }

  // Returns the column that a bank with an open row prefetches, or -1. Called when no request for
  // that row is left, and `waiting` for others at the controller. `l2_has`: returns whether L2 has
  // a column's data.
  template <typename L2Has>
  int32_t next_column(const Bank& bank, const int64_t waiting, const L2Has l2_has) const {
    if (!enabled_ || is_stopped(bank, waiting)) return -1;
    for (int32_t column = 0; column < columns_; ++column) {
      if (bank.was_accessed(column) || (config_.prefetch_absent != 0 && l2_has(column))) continue;
      return column;
    }
    return -1;
  }

 private:
  enum Stop : int32_t { kLines, kRowOfBank, kRowOfController };  // values of prefetch_stop

  static constexpr int32_t kFraction = 16;  // fractional bits of the mean

  // Returns whether requests keep a bank from prefetching.
  bool is_stopped(const Bank& bank, const int64_t waiting) const {
    if (config_.prefetch_stop == kRowOfController) return waiting > 0;
    if (bank.idle()) return false;
    return config_.prefetch_stop == kRowOfBank || bank.prefetched() >= max_prefetches(waiting);
  }

  // Returns how many lines of a row are prefetched although another row is requested: more while
  // few requests wait.
  int32_t max_prefetches(const int64_t waiting) const {
    const int64_t threshold = config_.prefetch_threshold;
    const bool few = threshold < 0 ? waiting << kFraction < mean_ : waiting < threshold;
    return few ? config_.prefetch_higher : config_.prefetch_lower;
  }

  Config config_;
  int32_t columns_;  // of a row
  bool enabled_;
  int64_t mean_ = 0;  // of waiting requests, with kFraction fractional bits
};

}  // namespace tbsched::sm_sim
