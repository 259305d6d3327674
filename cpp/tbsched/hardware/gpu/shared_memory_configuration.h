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
  explicit SharedMemoryConfiguration(const Device& device);

  // Returns the configuration that this SM would have for a block of this demand.
  int32_t configured(int32_t sm, const Demand& demand) const;
  bool admits(const int32_t sm, const Demand& demand) const {
    return open(sm) || demand.configuration.suits(units_[unit_of_sm_[sm]].configured);
  }
  // Returns the current configuration; 0: the next block decides.
  int32_t configured(int32_t sm) const;

  // Adds blocks. Returns the resulting configuration of the SM.
  int32_t commit(int32_t sm, const Demand& demand, int32_t blocks);
  void release(const int32_t sm, const int32_t blocks) {
    units_[unit_of_sm_[sm]].resident_blocks -= blocks;
    if (moment_ > 0) note_leaving(unit_of_sm_[sm]);
  }

  // Begins a new moment. Units that become idle from now on keep their configuration until the next
  // call, for blocks that it suits. Before the first call none does.
  void settle();
  // Whether any unit, or this SM, is idle and keeps its configuration.
  bool keeps() const { return keeps_; }
  bool keeps(const int32_t sm) const { return keeps_ && keeps_unit(unit_of_sm_[sm]); }

  // Whether the next block decides the configuration of the SM.
  bool open(const int32_t sm) const {
    return !acts_ || units_[unit_of_sm_[sm]].resident_blocks == 0;
  }

 private:
  struct Unit {  // a TPC or an SM
    int32_t configured = 0;
    int32_t resident_blocks = 0;
  };
  bool keeps_unit(const int32_t unit) const {
    return units_[unit].resident_blocks == 0 && left_[unit] == moment_;
  }

  void note_leaving(int32_t unit);

  bool acts_;
  int32_t largest_;
  const std::vector<int32_t>& unit_of_sm_;
  std::vector<Unit> units_;
  int64_t moment_ = 0;  // number of calls of settle()
  std::vector<int64_t>
      left_;  // by unit: the moment at which blocks left it last; empty before the first call
  bool keeps_ = false;
};

}  // namespace tbsched
