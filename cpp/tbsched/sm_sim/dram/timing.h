// When a controller may send each command next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tbsched/sm_sim/config.h"

namespace tbsched::sm_sim {

// Timing of one bank.
struct BankTiming {
  int64_t activate = 0;
  int64_t column = 0;
  int64_t precharge = 0;
};

// Timing of all banks of a controller, and how commands change it.
class Timing {
 public:
  explicit Timing(const Config& config)
      : config_(config), step_(std::max(config.t_ccd, config.burst())) {}

  int64_t activate(const BankTiming& bank) const {
    return std::max({bank.activate, activate_, config_.t_faw > 0 ? activates_[fourth_] : 0});
  }
  int64_t read(const BankTiming& bank) const { return std::max(bank.column, read_); }
  int64_t write(const BankTiming& bank) const { return std::max(bank.column, write_); }
  int64_t precharge(const BankTiming& bank) const { return bank.precharge; }

  void activated(const int64_t cycle, BankTiming& bank) {
    bank.activate = cycle + config_.t_rc;
    bank.column = cycle + config_.t_rcd;
    bank.precharge = cycle + config_.t_ras;
    activate_ = cycle + config_.t_rrd;
    activates_[fourth_] = cycle + config_.t_faw;
    fourth_ = (fourth_ + 1) % activates_.size();
  }
  // Notes a read. Returns when its data has been transferred.
  int64_t has_read(const int64_t cycle, BankTiming& bank) {
    bank.precharge = std::max(bank.precharge, cycle + config_.t_rtp);
    read_ = cycle + step_;
    // A write's data follows the read's.
    write_ = std::max<int64_t>(
        write_, cycle + std::max(config_.t_rtw, config_.t_cl + config_.burst() - config_.t_wl));
    return cycle + config_.t_cl + config_.burst();
  }
  void has_written(const int64_t cycle, BankTiming& bank) {
    const int64_t written = cycle + config_.t_wl + config_.burst();
    bank.precharge = std::max(bank.precharge, written + config_.t_wr);
    write_ = std::max(write_, cycle + step_);
    read_ = std::max(read_, written + config_.t_cdlr);
  }
  void precharged(const int64_t cycle, BankTiming& bank) {
    bank.activate = std::max(bank.activate, cycle + config_.t_rp);
  }

 private:
  Config config_;
  int64_t step_;
  int64_t activate_ = 0;
  int64_t read_ = 0;
  int64_t write_ = 0;
  std::array<int64_t, 4> activates_{};
  size_t fourth_ = 0;
};

}  // namespace tbsched::sm_sim
