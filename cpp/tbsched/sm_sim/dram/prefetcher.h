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
  // that row is left, and `waiting` for others at the controller. `held`: returns whether L2 has a
  // column's data.
  template <typename Held>
  int32_t column(const Bank& bank, const int64_t waiting, const Held held) const {
    if (!enabled_ || stops(bank, waiting)) return -1;
    for (int32_t column = 0; column < columns_; ++column) {
      if (bank.sent(column) || (config_.prefetch_absent != 0 && held(column))) continue;
      return column;
    }
    return -1;
  }

 private:
  enum Stop : int32_t { kLines, kRowOfBank, kRowOfController };  // values of prefetch_stop

  static constexpr int32_t kFraction = 16;  // fractional bits of the mean

  bool stops(const Bank& bank, const int64_t waiting) const {
    if (config_.prefetch_stop == kRowOfController) return waiting > 0;
    if (bank.idle()) return false;
    return config_.prefetch_stop == kRowOfBank || bank.prefetched() >= degree(waiting);
  }

  // Returns how many lines it prefetches although another row is requested: more while few
  // requests wait.
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
