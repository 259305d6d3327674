// How many SMs must be full before a block or a cluster finds no room.
#pragma once

#include <cstdint>

#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/packing.h"
#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

int32_t needed(const Demand& demand, const Device& device);
// Returns how many SMs of a domain must be full before it takes no cluster; 0: it never takes one.
// If clusters take whole TPCs, these SMs are in different TPCs.
int32_t needed_in(const ClusterDomain& domain, const Demand& demand, const DeviceSpec& spec);
// Returns the fewest blocks of a launch that is alone with which one more finds no room, if each
// full SM has so many of them: those of a domain are whole clusters.
int64_t needed_blocks(const Demand& demand, const Device& device, int32_t per_sm);
// Returns how many sets of blocks there are for one SM of each TPC, where one full SM of each is
// enough.
Multiset for_one_of_each_tpc(const Demands& demands, const Multiset& coming,
                             const DeviceSpec& spec);

}  // namespace tbsched
