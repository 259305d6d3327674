// Which SMs the groups of a green context split have (cuDevSmResourceSplitByCount).
//
// All groups have as many SMs. TPCs are dealt to them in pieces of one GPC, as large as groups may
// have and then ever smaller, and only as long as there is a piece for every group. Pieces come row
// by row: the first of each GPC, then the second; TPCs of no GPC ("singletons") come after the
// GPCs. Source: traces partitions/h100, partitions/h200.
//
// The driver lets a cluster be in one part of a group alone. Pieces that are next to each other in
// a GPC are two parts: the first piece, and all others. Source: traces
// partitions/cooperative-h100, partitions/cooperative-h200.
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
  std::vector<SmSet> parts;
};

struct Split {
  std::vector<SplitGroup> groups;
  std::vector<int32_t> rest;  // SMs, ascending
};

// Throws std::invalid_argument where the driver refuses, and for a device of which the GPCs or the
// SMs that are coscheduled are not known.
Split split_sms(const DeviceSpec& spec, const SplitRequest& request);

// The parts of a partition; nothing where it is none that a driver makes of this device.
std::optional<std::vector<SmSet>> parts_of(const Partition& partition, const DeviceSpec& spec);

}  // namespace tbsched
