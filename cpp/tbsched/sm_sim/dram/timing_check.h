// Checks commands against every constraint of the memory: written apart from the controller, which
// it catches where the controller is wrong.
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

  // The next command of one controller. Throws std::logic_error, naming the constraint that it
  // breaks, the command and the one before that it follows too soon.
  void next(const Command& command);

 private:
  struct Bank {
    std::array<int64_t, 4> last;  // when the last command of each kind was
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
