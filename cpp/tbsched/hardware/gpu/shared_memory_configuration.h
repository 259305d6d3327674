// Mechanism 3: shared memory and L1 cache share one memory. Depending on the device, the first
// block on an idle TPC sets its division for both SMs, or the first block on an idle SM for that
// SM. It stays until the TPC or SM is idle again.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

class SharedMemoryConfiguration {
 public:
  // All SMs are idle. The device outlives it.
  explicit SharedMemoryConfiguration(const Device& device);

  // Returns the bytes to which this SM would be configured for a block of this demand.
  int32_t configured(int32_t sm, const Demand& demand) const;
  // Returns whether the configuration of the SM suits blocks of this demand, or can be set for
  // them.
  bool admits(const int32_t sm, const Demand& demand) const {
    return open(sm) || demand.configuration.suits(units_[unit_of_sm_[sm]].configured);
  }
  // Returns the bytes to which the SM is configured; 0: the next block decides.
  int32_t configured(int32_t sm) const;

  // Adds blocks. Returns the bytes to which the SM is then configured.
  int32_t commit(int32_t sm, const Demand& demand, int32_t blocks);
  // Removes blocks.
  void release(const int32_t sm, const int32_t blocks) {
    units_[unit_of_sm_[sm]].resident_blocks -= blocks;
    if (moment_ > 0) note_exit(unit_of_sm_[sm]);
  }

  // Begins a new moment. TPCs or SMs that become idle from now on keep their configuration until
  // the next call, for blocks that it suits. Before the first call none does.
  void settle();
  // Returns whether any TPC or SM, or this SM, is idle and keeps its configuration.
  bool keeps() const { return keeps_; }
  bool keeps(const int32_t sm) const { return keeps_ && keeps_unit(unit_of_sm_[sm]); }

  // Returns whether the next block decides the configuration of the SM.
  bool open(const int32_t sm) const {
    return !acts_ || units_[unit_of_sm_[sm]].resident_blocks == 0;
  }

 private:
  struct Unit {              // a TPC or an SM
    int32_t configured = 0;  // bytes; of the last blocks if none is resident
    int32_t resident_blocks = 0;
  };
  // Returns whether a unit became idle in this moment, and so keeps its configuration.
  bool keeps_unit(const int32_t unit) const {
    return units_[unit].resident_blocks == 0 && last_exit_[unit] == moment_;
  }

  // Notes that blocks have left a unit in this moment.
  void note_exit(int32_t unit);

  bool acts_;        // whether the device has this mechanism
  int32_t largest_;  // configuration, in bytes
  const std::vector<int32_t>& unit_of_sm_;
  std::vector<Unit> units_;
  int64_t moment_ = 0;  // number of calls of settle()
  std::vector<int64_t>
      last_exit_;  // by unit: the moment at which blocks left it last; empty before the first call
  bool keeps_ = false;  // whether blocks have left any unit in this moment
};

}  // namespace tbsched
