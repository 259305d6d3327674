// When a controller may send each command next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tbsched/sm_sim/config.h"

namespace tbsched::sm_sim {

// The first DRAM cycle in which a bank may take each command.
struct BankTiming {
  int64_t activate = 0;
  int64_t column = 0;  // read or write
  int64_t precharge = 0;
};

// When the banks of a controller may take commands, and how each command changes that. Times are
// DRAM cycles.
class Timing {
 public:
  explicit Timing(const Config& config)
      : config_(config), access_cycles_(std::max(config.t_ccd, config.burst())) {}

  // Each returns the first cycle in which the command may be sent to a bank.
  int64_t earliest_activate(const BankTiming& bank) const {
    return std::max(
        {bank.activate, next_activate_, config_.t_faw > 0 ? after_activate_[oldest_] : 0});
  }
  int64_t earliest_read(const BankTiming& bank) const { return std::max(bank.column, next_read_); }
  int64_t earliest_write(const BankTiming& bank) const {
    return std::max(bank.column, next_write_);
  }
  int64_t earliest_precharge(const BankTiming& bank) const { return bank.precharge; }

  // Notes an activate that is sent in `cycle`.
  void note_activate(const int64_t cycle, BankTiming& bank) {
    bank.activate = cycle + config_.t_rc;
    bank.column = cycle + config_.t_rcd;
    bank.precharge = cycle + config_.t_ras;
    next_activate_ = cycle + config_.t_rrd;
    after_activate_[oldest_] = cycle + config_.t_faw;
    oldest_ = (oldest_ + 1) % after_activate_.size();
  }
  // Notes a read. Returns the cycle in which its data has been transferred.
  int64_t note_read(const int64_t cycle, BankTiming& bank) {
    bank.precharge = std::max(bank.precharge, cycle + config_.t_rtp);
    next_read_ = cycle + access_cycles_;
    // A write's data follows the read's.
    next_write_ = std::max<int64_t>(
        next_write_,
        cycle + std::max(config_.t_rtw, config_.t_cl + config_.burst() - config_.t_wl));
    return cycle + config_.t_cl + config_.burst();
  }
  void note_write(const int64_t cycle, BankTiming& bank) {
    const int64_t written = cycle + config_.t_wl + config_.burst();
    bank.precharge = std::max(bank.precharge, written + config_.t_wr);
    next_write_ = std::max(next_write_, cycle + access_cycles_);
    next_read_ = std::max(next_read_, written + config_.t_cdlr);
  }
  void note_precharge(const int64_t cycle, BankTiming& bank) {
    bank.activate = std::max(bank.activate, cycle + config_.t_rp);
  }

 private:
  Config config_;
  int64_t access_cycles_;  // from a read to the next, or a write
  int64_t next_activate_ = 0;
  int64_t next_read_ = 0;
  int64_t next_write_ = 0;
  std::array<int64_t, 4> after_activate_{};  // cycle and t_faw of the last four
  size_t oldest_ = 0;                        // of these
};

}  // namespace tbsched::sm_sim
