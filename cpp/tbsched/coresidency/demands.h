// What the launches of a question ask of an SM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/program/event.h"
#include "tbsched/sim/sm_groups.h"

namespace tbsched {

class Demands {
 public:
  Demands(const Device& device, const std::vector<Launch>& launches);

  const std::vector<Demand>& all() const { return demands_; }
  const Demand& operator[](const size_t launch) const { return demands_[launch]; }
  // Whether a block of a launch can be on an SM.
  bool may_be_on(const size_t launch, const int32_t sm) const {
    return may_be_on_[launch][static_cast<size_t>(sm)];
  }
  // Whether a launch that waits holds an SM, so that no launch behind it gets that.
  bool holds(const size_t launch, const int32_t sm) const {
    return held_[launch] == nullptr || held_[launch]->has(sm);
  }

 private:
  SmGroups groups_;  // whose SMs the demands name
  std::vector<Demand> demands_;
  std::vector<const SmSet*> held_;  // null: all
  std::vector<std::vector<bool>> may_be_on_;
};

int32_t usable_sms(const Demand& demand, int32_t sms);
// Divisor of all sizes of shared memory, and of all gaps but the last.
int32_t memory_unit(const std::vector<Demand>& demands);
// Room of an SM that becomes idle: it is configured anew, not always for more blocks.
int32_t room_when_idle(const Demand& demand, const Device& device);
// Whether no SM has room for more of its blocks than an idle one.
bool idle_is_best(const Demand& demand, const Device& device);
bool grows_local_memory(const Demand& demand, const DeviceSpec& spec);

// Whether an SM gains room for a launch by what leaves, or at least loses none, until it is idle.
bool gains_by_leaving(const Device& device, const Demand& demand);
// Whether a launch that finds room for all its blocks would find it, too, if blocks of others had
// left just before it came. So it is where each SM gains room by what leaves, or at least loses
// none, and where the launch takes all room that there is: a cluster then never takes the SMs of
// two others.
bool is_monotone(const Device& device, const Demand& demand);

}  // namespace tbsched
