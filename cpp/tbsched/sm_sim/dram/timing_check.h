// Checks commands against every constraint of the memory. Independent of the controller, so that it
// finds the controller's mistakes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "tbsched/sm_sim/config.h"
#include "tbsched/sm_sim/dram/command.h"

namespace tbsched::sm_sim {

class TimingCheck {
 public:
  explicit TimingCheck(const Config& config);

  // Checks the next command of one controller. Throws std::logic_error naming the constraint that
  // it breaks, the command and its bank and cycle.
  void check(const Command& command);

 private:
  struct Bank {
    std::array<int64_t, 4> last;  // cycle of the last command of each kind
    int64_t open = -1;            // row; -1: none
  };

  // Throws std::logic_error if the row is not open, or not closed, as the command needs it.
  void check_state(const Command& command, const Bank& bank) const;
  // Throws std::logic_error if the command comes fewer cycles after an earlier one than the memory
  // needs.
  void check_distances(const Command& command, const Bank& bank) const;
  // Throws std::logic_error if the command's data overlaps that of an earlier one on the bus.
  void check_data_bus(const Command& command);

  Config config_;
  std::vector<Bank> banks_;
  std::array<int64_t, 4> last_;    // likewise, of any bank
  int64_t last_command_;           // cycle
  int64_t data_end_;               // cycle in which the data bus is free
  std::deque<int64_t> activates_;  // cycles of the last four, of any bank
};

}  // namespace tbsched::sm_sim
