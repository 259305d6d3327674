// How many SMs must be full before a block or a cluster finds no room.
#pragma once

#include <cstdint>

#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/packing.h"
#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

// Returns how many SMs must be full before no block or cluster of a launch finds room: all that it
// may use, or the sum over the domains of its clusters.
int32_t sms_to_fill(const Demand& demand, const Device& device);
// Returns at least how many SMs of a domain are full when it takes no cluster; 0: it never takes
// one, or nothing is proved.
// If clusters take whole TPCs, these SMs are in different TPCs.
int32_t sms_to_fill_in(const ClusterDomain& domain, const Demand& demand, const DeviceSpec& spec);
// Returns with how many of its own blocks a launch that is alone fills the GPU, if `per_sm` of them
// fill an SM: the blocks of a domain are whole clusters.
int64_t blocks_to_fill(const Demand& demand, const Device& device, int32_t per_sm);
// Returns, by launch, how many of the `coming` blocks there are for one SM of each TPC, where one
// full SM of each TPC is enough: launches of whole TPCs have equally many on each.
Multiset for_one_of_each_tpc(const Demands& demands, const Multiset& coming,
                             const DeviceSpec& spec);

}  // namespace tbsched
