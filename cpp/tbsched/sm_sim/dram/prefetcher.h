// Opportunistic prefetching: reads lines of open rows that have not been requested.
#pragma once

#include <cstdint>

#include "tbsched/sm_sim/config.h"
#include "tbsched/sm_sim/dram/bank.h"

namespace tbsched::sm_sim {

class Prefetcher {
 public:
  Prefetcher(const Config& config, const bool enabled)
      : config_(config), columns_(config.row_bytes / config.access_bytes()), enabled_(enabled) {}

  // Notes a request; `waiting` requests are there now.
  void arrived(const int64_t waiting) {
    mean_ += ((waiting << kFraction) - mean_) >> config_.queue_mean_shift;
  }

  // Returns the column that a bank with an open row prefetches, or -1. Called when no request for
  // that row is left. If another row is requested, it prefetches a limited number of lines: more
  // while few requests wait. `held`: returns whether L2 has a column's data.
  template <typename Held>
  int32_t column(const Bank& bank, const int64_t waiting, const Held held) const {
    if (!enabled_) return -1;
    if (!bank.idle() && bank.prefetched() >= degree(waiting)) return -1;
    for (int32_t column = 0; column < columns_; ++column) {
      if (bank.sent(column) || (config_.prefetch_absent != 0 && held(column))) continue;
      return column;
    }
    return -1;
  }

 private:
  static constexpr int32_t kFraction = 16;  // fractional bits of the mean

  int32_t degree(const int64_t waiting) const {
    const int64_t threshold = config_.prefetch_threshold;
    const bool few = threshold < 0 ? waiting << kFraction < mean_ : waiting < threshold;
    return few ? config_.prefetch_higher : config_.prefetch_lower;
  }

  Config config_;
  int32_t columns_;
  bool enabled_;
  int64_t mean_ = 0;
};

}  // namespace tbsched::sm_sim
