// How the blocks of a launch choose SMs under a policy that takes the SM with the most room first.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/coresidency/demands.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// Single blocks; clusters that have a part in each of several TPCs, or on each of several SMs; or a
// way about which nothing is known.
enum class Way : uint8_t { single, whole_tpcs, balanced, other };

class LaunchPlaces {
 public:
  // The arguments outlive it.
  LaunchPlaces(const Model& model, const Demands& demands);

  Way way(const int32_t launch) const { return ways_[launch]; }
  // Returns how many SMs or TPCs of its domain a cluster takes; 1 for single blocks.
  int32_t parts(int32_t launch) const;
  // Returns the most blocks of a launch on an SM.
  int32_t most_room(const int32_t launch) const { return demands_[launch].blocks_per_sm; }

 private:
  const Device& device_;
  const Demands& demands_;
  std::vector<Way> ways_;
};

}  // namespace tbsched
