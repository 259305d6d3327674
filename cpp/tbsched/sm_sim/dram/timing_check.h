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

  // Checks the next command of one controller. Throws std::logic_error naming the violated
  // constraint, the command and the earlier command that it follows too soon.
  void next(const Command& command);

 private:
  struct Bank {
    std::array<int64_t, 4> last;  // cycle of the last command of each kind
    int64_t open = -1;
  };

  void check_state(const Command& command, const Bank& bank) const;
  void check_distances(const Command& command, const Bank& bank) const;
  void check_data_bus(const Command& command);

  Config config_;
  std::vector<Bank> banks_;
  std::array<int64_t, 4> last_;  // of any bank
  int64_t last_command_;
  int64_t data_end_;
  std::deque<int64_t> activates_;
};

}  // namespace tbsched::sm_sim
