// Mechanisms 2.1 and 2.2: which processing block each warp of a block goes to.
#pragma once

#include <cstdint>
#include <vector>

#include "model/device_spec.h"
#include "model/refusal.h"
#include "sm/demand.h"
#include "sm/footprint.h"
#include "sm/registers.h"

namespace tbsched {

struct Room {
  int32_t blocks = 0;               // of the launch asked about
  Refusal limiter = Refusal::none;  // what binds that number
};

class ProcessingBlocks {
 public:
  explicit ProcessingBlocks(const DeviceSpec& spec);

  Room room(const Demand& demand) const;

  // The warps of one block, which room() must have allowed; the pointer of the round robin moves
  // on.
  void commit(const Demand& demand, Footprint& footprint);
  void release(const Demand& demand, const Footprint& footprint);

  bool idle() const { return resident_warps_ == 0; }

 private:
  struct Unit {
    int32_t free_warps;
    RegisterFile registers;
  };
  int32_t warps_that_fit(const Unit& unit, const Demand& demand) const;
  WarpsPerProcessingBlock strict_turns(int32_t warps);
  WarpsPerProcessingBlock emptiest_first(const Demand& demand) const;

  std::vector<Unit> units_;
  bool strict_;
  bool skip_;
  int32_t next_ = 0;
  int32_t resident_warps_ = 0;
};

}  // namespace tbsched
