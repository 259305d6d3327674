// How the blocks of a launch choose SMs under a policy that takes the SM with the most room first.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/coresidency/demands.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// Single blocks; clusters of which a part is in each of several TPCs, or on each of several SMs;
// or a way about which nothing is known.
enum class Way : uint8_t { single, whole_tpcs, balanced, other };

class LaunchPlaces {
 public:
  // Both outlive it.
  LaunchPlaces(const Model& model, const Demands& demands);

  Way way(const int32_t launch) const { return ways_[launch]; }
  // SMs, or TPCs, that a cluster takes of its domain; 1 of single blocks.
  int32_t parts(int32_t launch) const;
  // The most blocks of a launch on an SM.
  int32_t most_room(const int32_t launch) const { return demands_[launch].blocks_per_sm; }

 private:
  const Device& device_;
  const Demands& demands_;
  std::vector<Way> ways_;
};

}  // namespace tbsched
