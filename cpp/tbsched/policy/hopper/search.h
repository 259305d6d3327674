// How long the scheduler looks for the SMs of a level that takes only some of those with room.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/topology.h"

namespace tbsched {

// For each SM, the turns after which a search that ends there is done. Even SMs are looked at
// before odd ones, and among them SMs of no GPC before the others. Those of the GPCs are looked at
// row by row, a row being the n-th TPC of each GPC, three to a turn. Source: trace h200/levels.
std::vector<int32_t> search_turns(const Topology& topology,
                                  const std::vector<int32_t>& sm_preference);

}  // namespace tbsched
