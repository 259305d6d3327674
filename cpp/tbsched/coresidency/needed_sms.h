// How many SMs must be full before a block or a cluster finds no room.
#pragma once

#include <cstdint>

#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/packing.h"
#include "tbsched/hardware/gpu/device.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {

// Returns how many SMs must be full before no block or cluster of a launch finds room: for single
// blocks all SMs that it may use, for clusters the sum of sms_to_fill_in() over the domains.
int32_t sms_to_fill(const Demand& demand, const Device& device);
// Returns a lower bound of the number of SMs of a domain that are full when it takes no cluster of
// the launch; 0: it never takes one, or nothing is proved.
// If clusters take whole TPCs, these SMs are in different TPCs.
int32_t sms_to_fill_in(const ClusterDomain& domain, const Demand& demand, const DeviceSpec& spec);
// Returns how many blocks a launch that is alone needs to fill the GPU, in whole clusters per
// domain. `per_sm`: how many of its blocks fill an SM.
int64_t blocks_to_fill(const Demand& demand, const Device& device, int32_t per_sm);
// Returns, by launch, how many of the `coming` blocks can be on the SMs if only one SM of each TPC
// counts. Half of them, on TPCs of two SMs, for launches that have equally many on each SM of a
// TPC.
Multiset for_one_of_each_tpc(const Demands& demands, const Multiset& coming,
                             const DeviceSpec& spec);

}  // namespace tbsched
