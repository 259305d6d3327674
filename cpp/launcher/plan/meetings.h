// Launches whose blocks meet: each block waits until all blocks of these launches have arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "launcher/driver/resources.h"
#include "launcher/probe/probe_abi.h"

namespace tbsched::cuda {

// Numbers of launches, each in at most one group.
using Groups = std::vector<std::vector<size_t>>;

// The launches of one group.
struct PlannedMeeting {
  std::vector<size_t> launches;
  uint32_t* met = nullptr;  // in host memory: 1 as soon as every block has seen all others
};

// Returns the launches that are in a group.
std::set<size_t> launches_in_groups(const Groups& groups);

// Memory in which blocks meet. Kept from run to run.
class MeetingPoints {
 public:
  explicit MeetingPoints(const Driver& driver) : points_(driver) {}

  // Returns `count` points to which no block has come, the first of them. The GPU must be idle.
  MeetingPoint* take_unused(size_t count);

 private:
  DeviceMemory<MeetingPoint> points_;
  size_t next_ = 0;  // first point that is unused
};

}  // namespace tbsched::cuda
