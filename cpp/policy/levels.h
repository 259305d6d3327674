// Filling the SMs level by level: all SMs with the most room get a block each, in order of
// preference, then all with one less. The same choices as Algorithm 1, because a block never leaves
// its SM more room than before and never changes the room of another.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/policy.h"

namespace tbsched {

struct Levels {
  std::vector<int32_t> sms;   // the SM of each block, in the order of choice
  std::vector<size_t> ends;   // where each level ends in `sms`
  bool last_is_whole = true;  // whether the last level took every SM with that much room
};

Levels fill_levels(const Demand& demand, int32_t blocks, const GpuState& gpu, const Commit& commit);

}  // namespace tbsched
