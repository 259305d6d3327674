// Mechanism 3: shared memory and L1 cache share one memory. How it is divided is set by the first
// block on an idle TPC for both of its SMs, or by the first block on an idle SM for itself, by
// device; it stays until that TPC or SM is idle again.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

class SharedMemoryConfiguration {
 public:
  explicit SharedMemoryConfiguration(const Device& device);

  // The configuration that this SM would have for a block of this demand.
  int32_t configured(int32_t sm, const Demand& demand) const;
  bool admits(const int32_t sm, const Demand& demand) const {
    return open(sm) || demand.configuration.suits(units_[unit_of_sm_[sm]].configured);
  }
  // The one that it has now; 0 where the next block decides.
  int32_t configured(int32_t sm) const;

  // Returns the configuration that the SM has now.
  int32_t commit(int32_t sm, const Demand& demand, int32_t blocks);
  void release(const int32_t sm, const int32_t blocks) {
    units_[unit_of_sm_[sm]].resident_blocks -= blocks;
    if (moment_ > 0) note_leaving(unit_of_sm_[sm]);
  }

  // What becomes idle from now on, and is taken before the next call, stays as it is configured if
  // that suits the block that takes it. Without any call nothing does.
  void settle();
  // Whether anything would stay so; whether this SM would.
  bool keeps() const { return keeps_; }
  bool keeps(const int32_t sm) const { return keeps_ && keeps_unit(unit_of_sm_[sm]); }

  // Whether the next block decides what the SM is configured to.
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
  int64_t moment_ = 0;         // the number of calls of settle
  std::vector<int64_t> left_;  // of each unit, at which moment blocks left it last; empty before
  bool keeps_ = false;
};

}  // namespace tbsched
