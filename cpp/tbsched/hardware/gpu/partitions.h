// The SMs of the groups of a green context split (cuDevSmResourceSplitByCount).
//
// All groups have equally many SMs. TPCs are dealt to them in pieces of one GPC, as large as groups
// may have, then smaller and smaller, and only while there is a piece for every group. Pieces come
// row by row: the first of each GPC, then the second; TPCs of no GPC ("singletons") come after the
// GPCs. Source: traces partitions/h100, partitions/h200.
//
// The driver places a cluster within one part of a group. Adjacent pieces of a GPC form two parts:
// the first piece, and all others. Source: traces partitions/cooperative-h100,
// partitions/cooperative-h200.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/hardware/sm_set.h"
#include "tbsched/program/partition.h"

namespace tbsched {

struct SplitGroup {
  std::vector<int32_t> sms;  // ascending
  std::vector<SmSet> parts;  // within one of which the driver places a cluster
};

struct Split {
  std::vector<SplitGroup> groups;
  std::vector<int32_t> rest;  // SMs, ascending
};

// Returns the groups of a split, and the SMs of no group. Throws std::invalid_argument if the
// driver refuses the request, and for a device whose GPCs or number of coscheduled SMs is not
// known.
Split split_sms(const DeviceSpec& spec, const SplitRequest& request);

// Returns the parts within which the driver places clusters of a partition; nothing if the driver
// would not make this partition of the device.
std::optional<std::vector<SmSet>> parts_of(const Partition& partition, const DeviceSpec& spec);

}  // namespace tbsched
