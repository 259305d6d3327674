// The duration of the search for the SMs of a level that takes only some of those with room.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/hardware/topology.h"

namespace tbsched {

// Returns for each SM the number of turns after which a search that ends there is done. Even SMs
// are searched before odd ones, and among them SMs of no GPC before the others. SMs of GPCs are
// searched row by row, three to a turn; a row is the n-th TPC of each GPC. Source: trace
// h200/levels.
std::vector<int32_t> search_turns(const Topology& topology,
                                  const std::vector<int32_t>& sm_preference);

}  // namespace tbsched
