// The demands of a question's launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/program/event.h"
#include "tbsched/sim/sm_subsets.h"

namespace tbsched {

// The demands, by launch, with the partitions that they refer to.
class Demands {
 public:
  // The device outlives it.
  Demands(const Device& device, const std::vector<Launch>& launches);

  const std::vector<Demand>& all() const { return demands_; }
  const Demand& operator[](const size_t launch) const { return demands_[launch]; }
  // Returns whether a block of a launch can be on an SM.
  bool may_be_on(const size_t launch, const int32_t sm) const {
    return may_be_on_[launch][static_cast<size_t>(sm)];
  }
  // Returns whether a waiting launch reserves an SM, so that no launch behind it gets that SM.
  bool reserves(const size_t launch, const int32_t sm) const {
    return reserved_[launch] == nullptr || reserved_[launch]->has(sm);
  }

 private:
  SmSubsets subsets_;  // owner of the SM sets that demands refer to
  std::vector<Demand> demands_;
  std::vector<const SmSet*> reserved_;  // nullptr: all SMs
  std::vector<std::vector<bool>> may_be_on_;
};

// Returns how many of the device's `sms` SMs a launch may use.
int32_t usable_sms(const Demand& demand, int32_t sms);
// Returns a divisor, in bytes, of all sizes of blocks' shared memory, and of all gaps but the last.
int32_t memory_unit(const std::vector<Demand>& demands);
// Returns for how many blocks an SM has room once it is idle. That may be fewer than before it was
// idle, as its shared memory is configured anew.
int32_t room_when_idle(const Demand& demand, const Device& device);
// Returns whether no SM has room for more blocks of the demand than an idle one.
bool idle_is_best(const Demand& demand, const Device& device);
// Returns whether blocks of the demand need more local memory than an untouched GPU has.
bool grows_local_memory(const Demand& demand, const DeviceSpec& spec);

// Returns whether an SM never loses room for a launch when blocks leave it, except when the last
// one leaves: then it is configured anew.
bool gains_by_leaving(const Device& device, const Demand& demand);
// Returns whether a launch that finds room for all its blocks also finds it if blocks of others
// left just before it arrived. This holds if blocks that leave never take room from any SM, and if
// the launch takes all room that there is: a cluster then never takes the SMs of two others.
bool is_monotone(const Device& device, const Demand& demand);

}  // namespace tbsched
