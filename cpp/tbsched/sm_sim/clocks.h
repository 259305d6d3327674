// One unit of time for parts with different clocks: a tick divides the cycles of all.
#pragma once

#include <cstdint>
#include <numeric>

#include "tbsched/sm_sim/config.h"

namespace tbsched::sm_sim {

struct Clocks {
  int64_t core;     // ticks of a core cycle
  int64_t network;  // of a network cycle
  int64_t dram;     // of a DRAM cycle
  int64_t slot;     // from one issue slot to the next

  explicit Clocks(const Config& config) {
    const int64_t core_mhz = config.core_mhz;
    const int64_t tick_mhz =
        std::lcm(std::lcm(core_mhz, int64_t{config.network_mhz}), int64_t{config.dram_mhz});
    core = tick_mhz / core_mhz;
    network = tick_mhz / config.network_mhz;
    dram = tick_mhz / config.dram_mhz;
    slot = core * config.issue_cycles;
  }
};

// Returns the first multiple of `step` that is not before `tick`.
inline int64_t next_multiple(const int64_t tick, const int64_t step) {
  return (tick + step - 1) / step * step;
}

}  // namespace tbsched::sm_sim
